"""What holds wherever the web process runs; gunicorn reads this file from the folder that it is started in."""

import logging
from datetime import timedelta
from typing import Any

from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.http import Request
from gunicorn.http.wsgi import Response

PROBES = {"/healthz", "/readyz", "/metrics"}  # asked for all the time: not worth a line


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

    def access(self, resp: Response, req: Request, environ: dict[str, Any], request_time: timedelta) -> None:
        if environ["PATH_INFO"] not in PROBES:
            super().access(resp, req, environ, request_time)


logger_class = _OneForm
access_log_format = "%(m)s %(U)s %(s)s in %(M)s ms"  # neither addresses nor query strings: they can be personal
control_socket_disable = True  # nobody uses it, and it would be made in the home folder
