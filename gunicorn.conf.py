"""What holds wherever the web process runs; gunicorn reads this file from the folder that it is started in."""

import logging

from gunicorn.config import Config
from gunicorn.glogging import Logger


class _OneForm(Logger):
    """gunicorn's own records in the form of all others: by default they are plain text between JSON lines."""

    def setup(self, cfg: Config) -> None:
        from pinpromo import logs  # only now is the project's folder on the path

        super().setup(cfg)
        logs.configure()
        for name in ("gunicorn.error", "gunicorn.access"):
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True


logger_class = _OneForm
control_socket_disable = True  # nobody uses it, and it would be made in the home folder
