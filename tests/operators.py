"""Logged-in people: what each may do comes from the roles' migration."""

import importlib

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client


class Person:
    """A browser of somebody with a role; every request is over TLS."""

    def __init__(self, role=None):
        # Tests on committed data empty all tables, the roles' too.
        importlib.import_module("promotion.migrations.0004_roles").create_roles(apps, None)
        self.user = get_user_model().objects.create_user(f"{role or 'nobody'}", is_staff=True)
        if role:
            self.user.groups.add(Group.objects.get(name=role))
        self.client = Client()
        self.client.force_login(self.user, "django.contrib.auth.backends.ModelBackend")

    def get(self, url, **parameters):
        return self.client.get(url, parameters, secure=True)

    def post(self, url, follow=True, **fields):
        return self.client.post(url, fields, secure=True, follow=follow)


def messages_of(response):
    """What the page tells the person, as one text."""
    return " ".join(str(message) for message in response.context["messages"])
