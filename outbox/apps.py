from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """Messages that wait to be published, and the relay that publishes them. Knows no other app."""

    name = "outbox"
