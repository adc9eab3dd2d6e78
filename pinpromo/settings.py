"""Django settings; every value that differs between environments comes from `docs/configuration.md`'s variables."""

import os
from datetime import timedelta
from pathlib import Path

from prometheus_client import disable_created_metrics

from pinpromo import env, logs, token_settings

BASE_DIR = Path(__file__).resolve().parent.parent

# PINPROMO_ENV_FILE names another file than `.env`; empty: none is read.
if env_file := os.environ.get("PINPROMO_ENV_FILE", str(BASE_DIR / ".env")):
    env.load(Path(env_file))

DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY = env.text(
    "SECRET_KEY",
    default="insecure-development-key" if DEBUG else None,
    hint="Set it to a long random text, or DEBUG=true for development.",
)
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = env.names("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "promotion.apps.OperatorsAdminConfig",  # django.contrib.admin, which begins with the operations page
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "axes",
    "csp",
    "django_prometheus",
    "outbox",
    "promotion",
]

MIDDLEWARE = [
    "pinpromo.probes.middleware",
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "pinpromo.unavailable.Unavailable",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "pinpromo" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "pinpromo.urls"
WSGI_APPLICATION = "pinpromo.wsgi.application"

# --- Database -------------------------------------------------------------------------------------
DATABASES = {"default": env.postgres("DATABASE_URL")}
DATABASES["default"].update(
    CONN_MAX_AGE=None,
    CONN_HEALTH_CHECKS=True,
    DISABLE_SERVER_SIDE_CURSORS=True,  # they break behind transaction pooling
)
DATABASES["default"]["OPTIONS"] = {
    # A peer that has gone without a word is noticed within seconds, not after the kernel's two hours.
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "pinpromo",
    **DATABASES["default"].get("OPTIONS", {}),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- The expiry worker (seconds) ------------------------------------------------------------------
EXPIRE_PROMOTIONS_MIN_INTERVAL = env.number("EXPIRE_PROMOTIONS_MIN_INTERVAL", default=60, low=0.01, high=300)
EXPIRE_PROMOTIONS_INTERVAL = env.number(
    "EXPIRE_PROMOTIONS_INTERVAL", default=60, low=EXPIRE_PROMOTIONS_MIN_INTERVAL, high=300
)
EXPIRE_PROMOTIONS_BATCH_SIZE = env.whole("EXPIRE_PROMOTIONS_BATCH_SIZE", default=200, low=1, high=10_000)
EXPIRE_PROMOTIONS_TICK_BUDGET = env.number("EXPIRE_PROMOTIONS_TICK_BUDGET", default=30, low=0.1, high=300)

# --- The outbox relay (seconds) -------------------------------------------------------------------
KAFKA_BOOTSTRAP_SERVERS = env.text("KAFKA_BOOTSTRAP_SERVERS", default="")
KAFKA_PROPERTIES = env.kafka_properties()
OUTBOX_BATCH_SIZE = env.whole("OUTBOX_BATCH_SIZE", default=500, low=1, high=10_000)
OUTBOX_POLL_INTERVAL = env.number("OUTBOX_POLL_INTERVAL", default=1, low=0.01, high=60)
OUTBOX_MAX_ATTEMPTS = env.whole("OUTBOX_MAX_ATTEMPTS", default=10, low=1, high=1_000)
OUTBOX_RETENTION_DAYS = env.number("OUTBOX_RETENTION_DAYS", default=7, low=0, high=3_650)
OUTBOX_TOPICS = ["pin.promotion.purchase-changed.v1"]  # their metrics exist from the start, at 0

# The exporter of traces reads the other OTEL_* variables itself.
TRACES_ENDPOINT = env.text(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", default=env.text("OTEL_EXPORTER_OTLP_ENDPOINT", default="")
)
# The admin page of what an event tells of, by event type: the outbox itself knows no other app.
OUTBOX_SUBJECT_PAGES = {"PromotionPurchaseChanged": "admin:promotion_promotionpurchase_change"}

OPS_PORT = env.whole("OPS_PORT", default=0, low=0, high=65_535)

# --- Bearer tokens of the cancel endpoint ---------------------------------------------------------
JWT_ALGORITHMS = env.names("JWT_ALGORITHMS")
JWT_KEY = env.text("JWT_KEY", default="").replace("\\n", "\n")  # a PEM text on one line is understood, too
JWT_JWKS_URL = env.text("JWT_JWKS_URL", default="")
JWT_ISSUER = env.text("JWT_ISSUER", default="")
JWT_AUDIENCE = env.text("JWT_AUDIENCE", default="")
token_settings.check(algorithms=JWT_ALGORITHMS, key=JWT_KEY, jwks_url=JWT_JWKS_URL)

# --- Web ------------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "pinpromo" / "static"]
# Whether a request came over TLS is for gunicorn to say: it believes X-Forwarded-Proto from the proxies in
# FORWARDED_ALLOW_IPS alone, whereas SECURE_PROXY_SSL_HEADER would believe anybody.
SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=not DEBUG)
SECURE_HSTS_SECONDS = 0 if DEBUG else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = SECURE_SSL_REDIRECT
SESSION_COOKIE_AGE = 12 * 3600  # a shift
CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT
METRICS_TOKEN = env.text("METRICS_TOKEN", default="")
TRACE_URL = env.text("TRACE_URL", default="")  # a trace's page, such as https://traces.example.com/{trace_id}
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],  # the admin's icons
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}

# --- Login ----------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
LOGIN_URL = LOGIN_REDIRECT_URL = "admin:index"
# Per name and address, so that a stranger cannot lock an operator out from elsewhere.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False  # `manage.py axes_reset` lifts a lock
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "pinpromo.formats"
USE_TZ = True

# They are one more series for each counter, which nobody looks at
disable_created_metrics()  # type: ignore[no-untyped-call]
LOGGING_CONFIG = None
logs.configure(debug=DEBUG)
