"""Addresses of the web process."""

from django.contrib import admin
from django.urls import path, re_path

import outbox.gauges
import promotion.gauges
from pinpromo import gauges
from promotion.views import cancel_purchase

urlpatterns = [
    path("admin/", admin.site.urls),
    path("metrics", gauges.exposition({"promotion_expire": promotion.gauges.read, "outbox": outbox.gauges.read})),
    re_path(r"^promotions/(?P<purchase_id>(?s:.*))/cancel\Z", cancel_purchase),
]
