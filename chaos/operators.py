"""An operator who cancels purchases on the admin's pages, with a browser's cookies and forms."""

import random
import re
import uuid
from http.client import HTTPException
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

from chaos.ledger import Answer, Ledger
from chaos.writer import Writer
from devstack.ports import HOST

NAME = "operator"
PATIENCE = 20.0  # seconds for a page
REASON = "by the campaign"
_CANCEL = "/admin/promotion/promotionpurchase/cancel/"
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_VERSION = re.compile(r'name="version" value="[0-9a-f-]{36}:(\d+)"')


class Operator:
    """Each act is one cancellation: the page that asks for the reason, and the form."""

    def __init__(self, port: int, password: str, writer: Writer, ledger: Ledger) -> None:
        self._site = f"http://{HOST}:{port}"
        self._password = password
        self._writer = writer
        self._ledger = ledger
        self._browser: OpenerDirector | None = None

    def act(self, dice: random.Random) -> None:
        """Cancel one of the latest purchases."""
        if sales := list(self._writer.recent)[-100:]:
            purchase = dice.choice(sales).id
            version, status = None, 0
            try:
                version, status = self._cancel(purchase)
            except HTTPError as error:
                status = error.code
            except (OSError, HTTPException):
                self._browser = None  # as after a break: log in anew
            told = None if version is None else version + 1
            self._ledger.answers.append(Answer(purchase, "operator", version, status, told))

    def _cancel(self, purchase: uuid.UUID) -> tuple[int | None, int]:
        """Return the version that was shown, and in the words of the HTTP interface what became of it."""
        page = self._open(f"{_CANCEL}?id={purchase}")
        if not (token := _TOKEN.search(page)) or not (shown := _VERSION.search(page)):
            return None, 409 if "Nothing to cancel" in page else 500
        version = int(shown[1])
        form = {"csrfmiddlewaretoken": token[1], "version": f"{purchase}:{version}", "reason": REASON}
        answer = self._open(_CANCEL, form)
        if f"{purchase} cancelled." in answer:
            return version, 200
        return version, 412 if f"{purchase} not cancelled:" in answer else 500

    def _open(self, path: str, form: dict[str, str] | None = None) -> str:
        """Return the page, after logging in if that is what it asks for."""
        if self._browser is None:
            browser = build_opener(HTTPCookieProcessor(CookieJar()))
            login = _read(browser, f"{self._site}/admin/login/")
            token = _TOKEN.search(login)
            credentials = {
                "username": NAME,
                "password": self._password,
                "csrfmiddlewaretoken": token[1] if token else "",
            }
            _read(browser, f"{self._site}/admin/login/?next=/healthz", credentials)
            self._browser = browser
        return _read(self._browser, self._site + path, form)


def _read(browser: OpenerDirector, url: str, form: dict[str, str] | None = None) -> str:
    body = urlencode(form).encode() if form else None
    with browser.open(url, body, timeout=PATIENCE) as response:
        text: str = response.read().decode()
        return text
