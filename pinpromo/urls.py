"""Addresses of the web process."""

from django.contrib import admin
from django.urls import path, re_path

import outbox.gauges
import promotion.gauges
from pinpromo import probes
from pinpromo.gauges import exposition
from promotion.views import cancel_purchase

metrics = exposition({"promotion_expire": promotion.gauges.read, "outbox": outbox.gauges.read})

urlpatterns = [
    path("admin/", admin.site.urls),
    re_path(r"^promotions/(?P<purchase_id>(?s:.*))/cancel\Z", cancel_purchase),
    path("healthz", probes.healthz),
    path("readyz", probes.readyz),
    path("metrics", probes.closed(metrics)),
]
