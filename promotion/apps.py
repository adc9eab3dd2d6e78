from django.apps import AppConfig
from django.contrib.admin import apps as admin


class PromotionConfig(AppConfig):
    """Purchases of promotions, and what ends them: expiry and cancellation."""

    name = "promotion"
    default = True


class OperatorsAdminConfig(admin.AdminConfig):
    """Django's admin with the operations page as its start."""

    default = False
    default_site = "promotion.site.OperatorsSite"
