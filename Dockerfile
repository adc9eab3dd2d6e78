# One image for the three processes: web (the default command), worker and relay.
FROM python:3.13-slim-bookworm AS build
COPY requirements/base.txt requirements/tracing.txt /requirements/
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check -r /requirements/tracing.txt

FROM python:3.13-slim-bookworm
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin pinpromo
COPY --from=build /venv /venv
WORKDIR /app
COPY manage.py gunicorn.conf.py ./
COPY pinpromo pinpromo
COPY outbox outbox
COPY promotion promotion
# The addresses are placeholders: collecting static files opens no connection.
RUN DATABASE_URL=postgres://build/build SECRET_KEY=build python manage.py collectstatic --noinput
USER 10001
EXPOSE 8000
# A stop lets the batch in hand end (10 s), then hurries it: give the container 20 s.
STOPSIGNAL SIGTERM
CMD ["gunicorn", "pinpromo.wsgi", "--bind=0.0.0.0:8000", "--workers=1", "--threads=8", "--access-logfile=-", "--worker-tmp-dir=/dev/shm"]
