"""PinPromo's settings with the peers' apps."""

from pinpromo.settings import *  # noqa: F403
from pinpromo.settings import INSTALLED_APPS as OURS

INSTALLED_APPS = [*OURS, "procrastinate.contrib.django", "django_tasks", "django_tasks_db", "jaiminho"]
PROCRASTINATE_IMPORT_PATHS = ["bench.peers.tasks"]
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
# The strategy that keeps the order and leaves all publishing to the relay, as ours does.
JAIMINHO_CONFIG = {"PUBLISH_STRATEGY": "keep-order", "DEFAULT_CAPTURE_EXCEPTION": None}
