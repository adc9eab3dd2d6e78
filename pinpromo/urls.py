"""Addresses of the web process."""

from django.contrib import admin
from django.urls import path

import outbox.gauges
import promotion.gauges
from pinpromo import gauges

urlpatterns = [
    path("admin/", admin.site.urls),
    path("metrics", gauges.exposition({"promotion_expire": promotion.gauges.read, "outbox": outbox.gauges.read})),
]
