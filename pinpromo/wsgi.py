"""The web process's entry point for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

from pinpromo import tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pinpromo.settings")
application = get_wsgi_application()
tracing.start("pinpromo-web")
