"""A real browser in front of the real web process."""

import os
import shutil

import pytest
from django.contrib.auth import get_user_model

from tests.programs import manage
from tests.web import gunicorn

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOGIN = ("olga", "right horse battery")
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # playwright runs an event loop in the tests' thread


@pytest.fixture(scope="package")
def static_files(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        collected = manage("collectstatic", "--noinput", PYTHONWARNINGS=None)
    assert collected.returncode == 0, collected.stderr


@pytest.fixture
def site(static_files, transactional_db):
    """The web process; its address. A new one for each test: it remembers ids that the flush changes."""
    with gunicorn(SECURE_SSL_REDIRECT="false") as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="package")
def chromium():
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "Chromium is missing; install it (Debian: apt-get install chromium)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def olga(transactional_db, settings):
    """An operator who may do everything."""
    return get_user_model().objects.create_superuser(LOGIN[0], password=LOGIN[1])


@pytest.fixture(params=["light"])
def page(request, chromium, site):
    """A page of a fresh browser; anything on its console, such as a breach of the policy, fails the test."""
    context = chromium.new_context(base_url=site, color_scheme=request.param, viewport={"width": 1360, "height": 900})
    context.set_default_timeout(30_000)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    assert not said


@pytest.fixture
def at_work(page, olga):
    """The page after the login."""
    log_in(page)
    return page


def log_in(page, password=LOGIN[1]):
    page.goto("/admin/")
    page.get_by_label("Username").fill(LOGIN[0])
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
