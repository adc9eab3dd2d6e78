from django.apps import AppConfig


class PromotionConfig(AppConfig):
    """Purchases of promotions, and what ends them: expiry and cancellation."""

    name = "promotion"
