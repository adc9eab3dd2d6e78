"""What an operator does at three in the morning, in a real browser."""

import json
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from outbox.models import Outbox
from promotion.models import ExpirationFailure, ExpirationRun
from tests.browser.conftest import log_in
from tests.factories import PurchaseFactory
from tests.readings import row

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def overdue():
    now = timezone.now()
    PurchaseFactory(ends_at=now + timedelta(hours=5))
    purchase = PurchaseFactory(ends_at=now - timedelta(hours=3, minutes=12), targets=2)
    ExpirationRun.objects.create(
        run_id=uuid.uuid4(), instance="worker-1:1", as_of=now, expired=41, failed=0, skipped_locked=0,
        duration_ms=12, lateness_seconds=3,
    )  # fmt: skip
    return purchase


def test_log_in_and_read_the_operations_page(page, olga, overdue):
    log_in(page, "wrong")
    expect(page.get_by_text("Please enter the correct username and password")).to_be_visible()
    log_in(page)
    expect(page.get_by_role("heading", name="Operations")).to_be_visible()
    expect(page.get_by_role("link", name="Overdue purchases 1 oldest 3 h 12 min")).to_be_visible()
    expect(page.get_by_role("link", name="Parked messages 0 none")).to_be_visible()
    expect(page.locator("figure.chart")).to_have_count(4)
    expect(page.get_by_role("img", name="Ending in the next 24 hours").locator("rect")).to_have_count(1)
    expect(page.get_by_role("row", name="worker-1:1").first).to_contain_text("41")
    assert page.evaluate("getComputedStyle(document.querySelector('.tiles')).display") == "grid"


def test_filter_see_the_badge_cancel_and_see_the_event(at_work, overdue):
    at_work.get_by_role("link", name="Overdue purchases").click()
    badge = at_work.locator("#result_list .badge")
    expect(badge).to_have_count(1)
    expect(badge).to_have_text("Overdue 3 h 12 min")
    at_work.get_by_role("link", name=str(overdue.pk)).click()
    at_work.get_by_role("link", name="Cancel …").click()
    button = at_work.get_by_role("button", name="Cancel 1 purchase")
    button.click()  # without a reason the browser itself refuses
    expect(button).to_be_visible()
    assert row(overdue)["status"] == "Active"

    at_work.get_by_label("Reason").fill("ordered twice")
    button.click()
    expect(at_work.get_by_text(f"{overdue.pk} cancelled.")).to_be_visible()
    expect(at_work.locator(".badge").first).to_contain_text("Cancelled")
    event = at_work.locator("table.plain tbody tr")
    expect(event).to_contain_text("Cancelled")
    expect(event).to_contain_text("Pending for")
    assert json.loads(Outbox.objects.get().payload)["status"] == row(overdue)["status"] == "Cancelled"
    event.get_by_role("link").click()
    expect(at_work.locator("pre").first).to_contain_text('"status": "Cancelled"')
    at_work.get_by_role("link", name=str(overdue.pk)).click()
    at_work.get_by_role("link", name="History").click()
    expect(at_work.get_by_text("Cancelled: ordered twice")).to_be_visible()


def test_retry_a_stuck_purchase(at_work):
    purchase = PurchaseFactory(ends_at=timezone.now() - timedelta(hours=1))
    ExpirationFailure.objects.remember({purchase.pk: "the purchase has no targets"}, at=timezone.now())
    at_work.goto("/admin/")
    at_work.get_by_role("link", name=str(purchase.pk)).click()
    expect(at_work.get_by_text("the purchase has no targets")).to_be_visible()
    at_work.get_by_role("button", name="Retry now").click()
    expect(at_work.get_by_text(f"{purchase.pk} expired.")).to_be_visible()
    assert row(purchase)["status"] == "Expired"


def test_requeue_a_parked_message(at_work):
    subject = uuid.uuid4()
    message = Outbox.objects.create(
        event_type="PromotionPurchaseChanged", aggregate_id=subject, topic="t", key=str(subject), payload="{}",
        parked_at=timezone.now() - timedelta(minutes=4), attempts=10, last_error="MSG_SIZE_TOO_LARGE",
    )  # fmt: skip
    at_work.goto("/admin/")
    at_work.get_by_role("link", name="Parked messages 1").click()
    expect(at_work.locator("#result_list .badge")).to_have_text("Parked 4 min ago")
    expect(at_work.get_by_text("MSG_SIZE_TOO_LARGE")).to_be_visible()
    at_work.get_by_role("link", name=str(message.pk), exact=True).click()
    at_work.get_by_role("button", name="Requeue").click()
    expect(at_work.get_by_text("1 requeued.")).to_be_visible()
    expect(at_work.locator(".badge").first).to_contain_text("Pending for")
    message.refresh_from_db()
    assert message.parked_at is None


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_every_colour_can_be_read(at_work, overdue):
    """A contrast of 4.5 or more (WCAG AA) of each badge and tile, in both themes."""
    PurchaseFactory(expired=True)
    PurchaseFactory(pending=True)
    PurchaseFactory(ends_at=timezone.now() - timedelta(seconds=20))
    ratios = {}
    for url, selector in [("/admin/", ".tile strong"), ("/admin/promotion/promotionpurchase/?status=all", ".badge")]:
        at_work.goto(url)
        for text, front, back in at_work.evaluate(COLOURS, selector):
            ratios[text] = contrast(front, back)
    assert len(ratios) > 6
    assert {text: ratio for text, ratio in ratios.items() if ratio < 4.5} == {}


COLOURS = """selector => Array.from(document.querySelectorAll(selector)).map(element => [
    element.innerText, getComputedStyle(element).color,
    getComputedStyle(element.closest('.tile, .badge')).backgroundColor])"""


def contrast(front, back):
    lighter, darker = sorted((luminance(front), luminance(back)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    parts = [float(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
