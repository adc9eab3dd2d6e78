"""Addresses of the web process."""

from django.contrib import admin
from django.urls import path, re_path

from promotion.views import cancel_purchase

urlpatterns = [
    path("admin/", admin.site.urls),
    re_path(r"^promotions/(?P<purchase_id>(?s:.*))/cancel\Z", cancel_purchase),
]
