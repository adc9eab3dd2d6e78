"""What every page sends, and what the login allows."""

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

pytestmark = pytest.mark.django_db
LOGIN = {"username": "olga", "password": "right horse battery"}


@pytest.fixture
def olga(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick
    return get_user_model().objects.create_superuser(**LOGIN)


def log_in(client, **changes):
    address = changes.pop("address", "192.0.2.1")
    return client.post(reverse("admin:login"), LOGIN | changes, secure=True, REMOTE_ADDR=address)


def test_pages_forbid_what_they_do_not_need(client):
    response = client.get(reverse("admin:login"), secure=True)
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert response["Strict-Transport-Security"].startswith("max-age=31536000")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"


def test_plain_http_is_redirected(client):
    response = client.get(reverse("admin:login"))
    assert (response.status_code, response["Location"]) == (301, "https://testserver/admin/login/")


def test_cookies_stay_on_tls(client, olga):
    cookies = log_in(client).cookies
    assert cookies["sessionid"]["secure"]
    assert cookies["sessionid"]["httponly"]
    assert cookies["csrftoken"]["secure"]


@pytest.mark.parametrize("target", ["https://evil.example.com/", "//evil.example.com/", "javascript:alert(1)"])
def test_the_login_leads_nowhere_else(client, olga, target):
    assert log_in(client, next=target)["Location"] == reverse("admin:index")


def test_guessing_is_stopped_without_locking_the_person_out(client, olga):
    for _ in range(4):
        assert log_in(client, password="wrong").status_code == 200
    assert log_in(client, password="wrong").status_code == 429
    assert log_in(client).status_code == 429
    assert log_in(client, address="192.0.2.2").status_code == 302
