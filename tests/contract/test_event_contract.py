"""The event's contract: what the documents say, and what is really in the topic."""

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary_event
from django.utils import timezone

from outbox.models import Outbox
from promotion import cancellation
from promotion.events import TOPIC
from tests.factories import PurchaseFactory
from tests.messages import consume
from tests.programs import manage

CONTRACT = Path(__file__).parents[2] / "docs/contract"
GUIDE = CONTRACT.parent / "events.md"
SCHEMA = json.loads((CONTRACT / "purchase-changed.v1.schema.json").read_text())
GOLDEN = json.loads(Path(__file__).with_name("golden.v1.schema.json").read_text())
ASYNCAPI = yaml.safe_load((CONTRACT / "asyncapi.yaml").read_text())
MESSAGE = ASYNCAPI["components"]["messages"]["purchaseChanged"]
HEADERS = ASYNCAPI["components"]["schemas"]["headers"]


def check(value, schema):
    checker = jsonschema.Draft7Validator.FORMAT_CHECKER
    jsonschema.Draft7Validator(schema, format_checker=checker).validate(value)


def meaning(schema):
    """The schema without the words that are for people alone."""
    if isinstance(schema, dict):
        return {key: meaning(value) for key, value in schema.items() if key not in {"description", "title", "examples"}}
    return [meaning(item) for item in schema] if isinstance(schema, list) else schema


def broken_promises(new, old):
    """What consumers of `old` relied on and `new` no longer says. Further properties are no break."""
    new, old = meaning(new), meaning(old)
    missing = [f"required: {name}" for name in old["required"] if name not in new["required"]]
    properties = old["properties"].items()
    changed = [f"property: {name}" for name, was in properties if new["properties"].get(name) != was]
    others = [key for key in old if key not in {"required", "properties"} and new.get(key) != old[key]]
    return missing + changed + others


def test_contract_keeps_every_promise_of_the_golden_copy():
    assert broken_promises(SCHEMA, GOLDEN) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda schema: schema["required"].remove("version"),
        lambda schema: schema["properties"].pop("tenantId"),
        lambda schema: schema["properties"]["version"].update(type="string"),
        lambda schema: schema["properties"]["status"]["enum"].append("Paused"),
        lambda schema: schema["then"]["properties"]["targets"].pop("minItems"),
    ],
)
def test_incompatible_change_is_noticed(change):
    changed = json.loads(json.dumps(SCHEMA))
    change(changed)
    assert broken_promises(changed, GOLDEN)


def test_further_property_is_compatible():
    grown = SCHEMA | {"properties": SCHEMA["properties"] | {"reason": {"type": "string"}}}
    assert broken_promises(grown, GOLDEN) == []


def test_schema_and_examples_are_valid():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    for example in SCHEMA["examples"]:
        check(example, SCHEMA)
    for example in MESSAGE["examples"]:
        check(example["payload"], SCHEMA)
        check(example["headers"], HEADERS)


@pytest.mark.parametrize(
    "damage",
    [
        {"targets": []},
        {"packageKind": "Mystery"},
        {"status": "Active"},
        {"version": 0},
        {"endsAt": "2026-01-15T11:59:30Z"},
        {"purchaseId": "C7A1F6DE-93A4-4C3E-A7AB-1DE4D07F5B33"},
        {"targets": [{"targetType": "Mystery", "targetId": str(uuid.uuid4())}]},
    ],
)
def test_schema_refuses_a_damaged_expiry(damage):
    with pytest.raises(jsonschema.ValidationError):
        check(SCHEMA["examples"][0] | damage, SCHEMA)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "oddity", [{"package_kind": ""}, {"targets__target_type": ""}, {"targets": 0}, {"version": -5}], ids=str
)
def test_a_purchase_that_nobody_expected_is_cancelled_by_an_event_of_the_contract(oddity):
    purchase = PurchaseFactory(**oddity)
    cancellation.cancel(purchase.pk, tenant_id=None, at=timezone.now(), correlation_id=uuid.uuid4())
    check(json.loads(Outbox.objects.get().payload), SCHEMA)


def test_asyncapi_document_speaks_of_this_topic_and_schema():
    channel = ASYNCAPI["channels"]["purchaseChanged"]
    assert ASYNCAPI["asyncapi"] == "3.1.0"
    assert channel["address"] == channel["bindings"]["kafka"]["topic"] == TOPIC
    assert (CONTRACT / MESSAGE["payload"]["schema"]["$ref"]).resolve() == CONTRACT / "purchase-changed.v1.schema.json"
    for reference in re.findall(r"'#/([^']+)'", (CONTRACT / "asyncapi.yaml").read_text()):
        found = ASYNCAPI
        for part in reference.split("/"):
            found = found[part]


def test_guide_names_every_property_and_header():
    guide = GUIDE.read_text()
    for name in [*SCHEMA["properties"], *HEADERS["properties"]]:
        assert f"`{name}`" in guide, name


@cache
def expired_and_cancelled():
    """Real messages from the topic, by purchase: an expired, a cancelled and a cancelled poison purchase."""
    now = timezone.now()
    expired = PurchaseFactory(ends_at=now - timedelta(minutes=1), targets=3, payment_status="Refunded")
    cancelled = PurchaseFactory(ends_at=now + timedelta(days=1), package_kind="Top")
    poison = PurchaseFactory(ends_at=now + timedelta(days=1), package_kind="Mystery", targets=0)
    for purchase in (cancelled, poison):
        cancellation.cancel(purchase.pk, tenant_id=None, at=now, correlation_id=uuid.uuid4())
    assert manage("expire_promotions").returncode == 0
    recorded = {message.key: (message.payload, message.headers) for message in Outbox.objects.all()}
    assert manage("relay_outbox").returncode == 0
    records = {record.key().decode(): record for record in consume(TOPIC, 3)}
    return {purchase: records[str(purchase.pk)] for purchase in (expired, cancelled, poison)}, recorded


@pytest.mark.broker
@pytest.mark.django_db(transaction=True)
class TestRealMessages:
    def test_are_as_the_contract_says(self):
        messages, recorded = expired_and_cancelled()
        for purchase, record in messages.items():
            value = json.loads(record.value())
            headers = {name: text.decode() for name, text in record.headers()}
            payload, stored_headers = recorded[str(purchase.pk)]

            check(value, SCHEMA)
            check(value, GOLDEN)
            check(headers, HEADERS)
            assert set(value) == set(SCHEMA["properties"])
            assert set(headers) == set(HEADERS["properties"]) - {"traceparent"}
            assert record.value() == payload.encode()  # what the admin shows, byte by byte
            assert headers == stored_headers
            assert record.key().decode() == value["purchaseId"] == headers["ce_subject"] == str(purchase.pk)

    def test_are_cloudevents_to_the_official_sdk(self):
        for record in expired_and_cancelled()[0].values():
            event = from_binary_event(KafkaMessage(dict(record.headers()), record.key(), record.value()))
            value = json.loads(record.value())

            assert (event.get_id(), event.get_subject()) == (value["eventId"], value["purchaseId"])
            assert (event.get_type(), event.get_source(), event.get_specversion()) == (TOPIC, "/pin/promotion", "1.0")
            assert event.get_time() == datetime.fromisoformat(value["occurredAt"])
            assert event.get_time().tzinfo is not None
            assert event.get_time() < datetime.now(UTC)
            assert event.get_datacontenttype() == "application/json"
            assert event.get_extension("correlationid") == value["correlationId"]
            assert event.get_data() == value
