"""Changes of the product that each break one promise, for the mutation check."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devstack.errors import DevstackError
from devstack.program import ROOT

PRODUCT = ("manage.py", "gunicorn.conf.py", "pinpromo", "promotion", "outbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A change of the product's text, the faults that bring it to light, and the promise that it breaks."""

    name: str
    file: str
    changes: Sequence[tuple[str, str]]
    kinds: Sequence[str]
    breaks: str


MUTANTS = (
    Mutant(
        name="drop SKIP LOCKED",
        file="promotion/claiming.py",
        changes=[("select_for_update(skip_locked=True)[:limit]", "select_for_update()[:limit]")],
        kinds=["lock-purchases"],
        breaks="every expiry within",
    ),
    Mutant(
        name="mark before acknowledgement",
        file="outbox/relay.py",
        changes=[
            (
                "mark_published(outcome.acknowledged)",
                "mark_published({message.pk: Acknowledgement(None, None) for message in messages})",
            ),
            ("from outbox.outcomes import ", "from outbox.outcomes import Acknowledgement, "),
        ],
        kinds=["broker-suspend", "kill"],
        breaks="every event is in the topic",
    ),
    Mutant(
        name="count a negative delivery report as published",
        file="outbox/publisher.py",
        changes=[("            if error is None:\n                self", "            if True:\n                self")],
        kinds=["missing-topic", "forget"],
        breaks="every event is in the topic",
    ),
    Mutant(
        name="let relays share a lane",
        file="outbox/claiming.py",
        changes=[
            ("FOR UPDATE OF lanes SKIP LOCKED", "FOR SHARE OF lanes"),
            (" if message.pk < missed.get(message.key, message.pk + 1)]", "]"),
        ],
        kinds=["delay", "suspend"],
        breaks="first appearances of each key are in order",
    ),
    Mutant(
        name="write the event outside the transaction",
        file="promotion/batches.py",
        changes=[
            (
                "        record(messages)\n",
                "        transaction.on_commit(lambda: transaction.atomic(record)(messages))\n",
            ),
            ("from django.db import OperationalError\n", "from django.db import OperationalError, transaction\n"),
        ],
        kinds=["kill-in-commit"],
        breaks="one event for each change",
    ),
    Mutant(
        name="ignore the version that a manager names",
        file="promotion/cancellation.py",
        changes=[("seen not in expected_versions", "seen in ()")],
        kinds=["cut"],
        breaks="each manager was told the truth",
    ),
    Mutant(
        name="ignore the version when expiring",
        file="promotion/claiming.py",
        changes=[("version = version + 1", "version = version")],
        kinds=["cut"],
        breaks="version = 1 + number of changes",
    ),
    Mutant(
        name="expire a second early",
        file="promotion/expiration.py",
        changes=[("return min(as_of, database_now)", "return min(as_of, database_now) + CLOCK_TOLERANCE")],
        kinds=["cut"],
        breaks="nothing expires early",
    ),
    Mutant(
        name="believe a clock that is ahead of the database's",
        file="promotion/expiration.py",
        changes=[("return min(as_of, database_now)", "return as_of")],
        kinds=["clock-jump"],
        breaks="nothing expires early",
    ),
    Mutant(
        name="stop at the first poison",
        file="promotion/batches.py",
        changes=[("            batch.failed[purchase] = error\n", "            raise\n")],
        kinds=["poison"],
        breaks="no program ends by itself",
    ),
)


def mutate(mutant: Mutant, target: Path) -> None:
    """Copy the product to `target` with the mutant's changes. Raises DevstackError if its text is not there."""
    for name in PRODUCT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target / name)
    path = target / mutant.file
    text = path.read_text()
    for old, new in mutant.changes:
        if text.count(old) != 1:
            message = f"mutant {mutant.name!r}: {mutant.file} holds {old!r} {text.count(old)} times, not once"
            raise DevstackError(message)
        text = text.replace(old, new)
    path.write_text(text)
