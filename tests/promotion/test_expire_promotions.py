"""The command's flags, results on stdout and exit codes, as in the public interface."""

import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import execute_from_command_line

from promotion.models import ExpirationFailure
from tests import poison
from tests.factories import NOW, PurchaseFactory
from tests.readings import messages, rows, statuses

LONG_AGO = NOW - timedelta(days=400)
FIELDS = ["run_id", "as_of", "selected", "expired", "skipped_locked", "failed", "duration_ms"]


@pytest.fixture
def expire(capsys):
    """Run the command as manage.py does; return its exit code, stdout's lines and stderr."""

    def run(*arguments):
        try:
            execute_from_command_line(["manage.py", "expire_promotions", *arguments])
            code = 0
        except SystemExit as end:
            code = end.code
        output = capsys.readouterr()
        return code, output.out.splitlines(), output.err

    return run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--interval", "0"], "argument --interval: '0' is not a number from 60 to 300"),
        (["--interval", "59.9"], "argument --interval: '59.9' is not a number from 60 to 300"),
        (["--interval", "301"], "argument --interval: '301' is not a number from 60 to 300"),
        (["--interval", "nan"], "argument --interval: 'nan' is not a number from 60 to 300"),
        (["--interval", "soon"], "argument --interval: 'soon' is not a number from 60 to 300"),
        (["--batch-size", "0"], "argument --batch-size: '0' is not a whole number from 1 to 10000"),
        (["--batch-size", "10001"], "argument --batch-size: '10001' is not a whole number from 1 to 10000"),
        (["--batch-size", "1.5"], "argument --batch-size: '1.5' is not a whole number from 1 to 10000"),
        (["--batch-size=-1"], "argument --batch-size: '-1' is not a whole number from 1 to 10000"),
        (["--as-of", "yesterday"], "argument --as-of: 'yesterday' is not an ISO 8601 time"),
        (["--as-of", "2026-01-15T12:00:00"], "has no UTC offset; add one, such as Z or +00:00"),
        (["--as-of", "2999-01-01T00:00:00Z"], "is in the future; nothing expires early"),
        (["--ops-port", "65536"], "argument --ops-port: '65536' is not a whole number from 0 to 65535"),
        (["--loop", "--as-of", "2026-01-15T12:00:00Z"], "--as-of cannot be used with --loop"),
        (["--loop", "--strict"], "--strict cannot be used with --loop"),
        (["--loop", "--dry-run"], "--dry-run cannot be used with --loop"),
        (["--drian"], "unrecognized arguments: --drian"),
    ],
)
def test_a_bad_argument_is_one_clear_line_and_exit_2(expire, arguments, words):
    code, lines, errors = expire(*arguments)
    assert (code, lines) == (2, [])
    assert errors.splitlines()[-1].endswith(words)
    assert "Traceback" not in errors


@pytest.mark.django_db(transaction=True)
def test_json_is_one_object_a_cycle_and_nothing_else(expire):
    PurchaseFactory.create_batch(2)
    PurchaseFactory(targets=0)
    before = datetime.now(UTC)
    code, lines, _errors = expire("--json")
    assert code == 0
    (line,) = lines
    result = json.loads(line)
    assert list(result) == FIELDS
    uuid.UUID(result["run_id"])
    assert result["as_of"].endswith("Z")
    assert before <= datetime.fromisoformat(result["as_of"]) <= datetime.now(UTC)
    assert result["duration_ms"] > 0
    counts = {name: result[name] for name in FIELDS[2:6]}
    assert counts == {"selected": 3, "expired": 2, "skipped_locked": 0, "failed": 1}


@pytest.mark.django_db(transaction=True)
def test_without_json_it_is_one_line_for_people(expire):
    PurchaseFactory()
    code, lines, _errors = expire()
    assert code == 0
    assert len(lines) == 1
    assert lines[0].startswith("expired 1, failed 0, skipped 0 locked, in ")


@pytest.mark.django_db(transaction=True)
def test_one_batch_a_run_unless_drained(expire):
    purchases = PurchaseFactory.create_batch(5)
    _code, lines, _errors = expire("--batch-size", "2", "--json")
    assert [json.loads(line)["expired"] for line in lines] == [2]
    _code, lines, _errors = expire("--batch-size", "1", "--drain", "--json")
    results = [json.loads(line) for line in lines]
    assert [result["expired"] for result in results] == [1, 1, 1, 0]
    assert len({result["run_id"] for result in results}) == 4
    assert statuses(purchases) == ["Expired"] * 5


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["no targets", "row refused"])
def test_a_drain_does_not_spin_on_poison(expire, kind):
    poison.create(kind, 30, ends_at=LONG_AGO)
    healthy = PurchaseFactory.create_batch(20)
    for failed in ([30, 0, 0], [30]):
        _code, lines, _errors = expire("--batch-size", "10", "--drain", "--json")
        assert [json.loads(line)["failed"] for line in lines] == failed
    assert statuses(healthy) == ["Expired"] * 20
    assert set(ExpirationFailure.objects.values_list("attempts", flat=True)) == {2}


@pytest.mark.django_db(transaction=True)
def test_strict_exits_3_when_a_purchase_failed(expire):
    PurchaseFactory(targets=0)
    healthy = PurchaseFactory()
    code, lines, errors = expire("--strict")
    assert (code, len(lines)) == (3, 1)
    assert errors.splitlines()[-1] == "CommandError: 1 purchases could not be expired"
    assert statuses([healthy]) == ["Expired"]
    assert expire()[0] == 0


@pytest.mark.django_db(transaction=True)
def test_strict_exits_0_when_none_failed(expire):
    PurchaseFactory()
    assert expire("--strict")[0] == 0


@pytest.mark.django_db(transaction=True)
def test_as_of_expires_what_was_due_then_and_stamps_it_so(expire):
    later = PurchaseFactory(ends_at=NOW + timedelta(seconds=1))
    due = PurchaseFactory(ends_at=NOW)
    code, lines, _errors = expire("--as-of", "2026-01-15T15:00:00+03:00", "--json")
    assert code == 0
    assert json.loads(lines[0])["as_of"] == "2026-01-15T12:00:00.000000Z"
    assert statuses([later, due]) == ["Active", "Expired"]
    assert rows(due)[due.pk]["updated_at"] == NOW


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("flags", "expired"), [(["--batch-size", "3"], 3), (["--batch-size", "3", "--drain"], 5)])
def test_a_dry_run_tells_and_changes_nothing(expire, flags, expired):
    PurchaseFactory.create_batch(5)
    PurchaseFactory(not_due=True, ends_at=datetime.now(UTC) + timedelta(hours=1))
    poison.create("no targets", 2, ends_at=LONG_AGO)
    before = rows()
    code, lines, _errors = expire("--dry-run", "--json", *flags)
    result = json.loads(lines[0])
    assert (code, len(lines), list(result)) == (0, 1, [*FIELDS, "dry_run"])
    assert (result["expired"], result["failed"], result["dry_run"]) == (expired, 2, True)
    assert (rows(), messages(), ExpirationFailure.objects.count()) == (before, [], 0)


@pytest.mark.django_db(transaction=True)
def test_the_textfile_says_when_the_last_cycle_completed(expire, tmp_path):
    path = tmp_path / "promotion.prom"
    started = datetime.now(UTC).timestamp()
    assert expire("--metrics-textfile", str(path))[0] == 0
    name, value = path.read_text().splitlines()[-1].split()
    assert name == "promotion_expire_last_success_timestamp_seconds"
    assert started <= float(value) <= datetime.now(UTC).timestamp()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.django_db(transaction=True)
def test_a_textfile_that_cannot_be_written_is_one_clear_line(expire, tmp_path):
    code, _lines, errors = expire("--metrics-textfile", str(tmp_path / "missing" / "promotion.prom"))
    assert code == 1
    assert "promotion.prom" in errors.splitlines()[-1]
    assert "Traceback" not in errors
