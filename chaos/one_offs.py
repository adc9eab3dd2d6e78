"""Commands that people and cron run beside the loops: each ends with 0, or with 1 and one line that says why."""

import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from chaos.lateness import merged
from chaos.ledger import Ledger
from chaos.system import System
from chaos.verdict import Verdict
from devstack.guarded import GuardedFolder
from devstack.ports import wait_until

PATIENCE = 90.0  # seconds for a command
EXCUSED = 15.0  # seconds after a disturbance in which a command may still have met it
COMMANDS: Sequence[Sequence[str]] = (
    ("expire_promotions", "--json"),
    ("expire_promotions", "--drain"),
    ("expire_promotions", "--dry-run", "--drain", "--json"),
    ("relay_outbox", "--json"),
    ("prune_outbox",),
    ("verify_outbox", "--json"),
)
UNFINISHED = frozenset({"relay_outbox"})  # exits with 1 also when others have just recorded something
# Published so long ago that nobody needs them any more: those left at the end would be missing in the topic.
_OLD_MESSAGES = """
INSERT INTO promotion.outbox (event_type, aggregate_id, topic, key, payload, created_at, published_at)
SELECT 'Old', gen_random_uuid(), 'chaos.old', 'old', '{}', now() - interval '30 days', now() - interval '30 days'
FROM generate_series(1, %s)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One command that has ended (`code` None: it had to be ended). From `start` to `end` on the wall clock."""

    command: str
    start: float
    end: float
    code: int | None
    output: str

    @property
    def last_line(self) -> str:
        """The end of what it printed."""
        return (self.output.strip().splitlines() or [""])[-1]


class OneOffs:
    """Runs them, one at a time, as `name`; `close` ends the one at work."""

    def __init__(self, name: str, system: System) -> None:
        self._system = system
        self._environ = {**system.environ, "EXPIRE_PROMOTIONS_TICK_BUDGET": "30"}  # the default: nobody waits for it
        self._folder = GuardedFolder(name)
        self.runs: list[Run] = []

    def act(self, dice: random.Random) -> None:
        """Run one of them."""
        command = dice.choice(COMMANDS)
        if command == ("prune_outbox",):
            self._leave_old_messages(dice.randint(1, 50))
        self.run(*command)

    def run(self, *arguments: str) -> Run:
        """Run `manage.py` with `arguments` to its end."""
        start, before = time.time(), self._folder.log_size()
        self._folder.start([sys.executable, self._system.manage, *arguments], environ=self._environ)
        wait_until(lambda: self._folder.poll() is not None or time.time() > start + PATIENCE, seconds=2 * PATIENCE)
        code = self._folder.poll()
        self._folder.end([])
        run = Run(" ".join(arguments), start, time.time(), code, self._folder.log_since(before))
        self.runs.append(run)
        return run

    def close(self) -> None:
        """Clean up."""
        self._folder.close()

    def _leave_old_messages(self, count: int) -> None:
        with (
            contextlib.suppress(psycopg.Error),  # another time
            psycopg.connect(self._system.url, connect_timeout=5, application_name="chaos") as connection,
        ):
            connection.execute(_OLD_MESSAGES, [count])


def check(runs: Sequence[Run], ledger: Ledger, verdict: Verdict) -> None:
    """Judge how each ended."""
    disturbed = merged(ledger.disturbances, "delivery")
    breaches = [
        f"{run.command} at {run.start:.1f}: exit code {run.code} in {run.end - run.start:.1f} s: {run.last_line[:200]}"
        for run in runs
        if not _ended_well(run, disturbed)
    ]
    verdict.judge("a command beside the loops ends by itself, and says in one line why if it failed", breaches)
    verdict.judge("the outbox and the topic agree, verify_outbox finds", _differences(runs))
    counts = Counter((run.command.split()[0], run.code) for run in runs)
    verdict.figures.append(
        "commands: "
        + ", ".join(f"{count} x {name} ({code})" for (name, code), count in sorted(counts.items(), key=str))
    )


def _differences(runs: Sequence[Run]) -> list[str]:
    """Return what verify_outbox complained of, and that it has never looked, if so."""
    looks = [run for run in runs if run.command.startswith("verify_outbox")]
    found = [run.output for run in looks if run.code == 1 and "differ" in run.last_line]
    return found if any(run.code == 0 for run in looks) else [*found, "it never came to an end"]


def _ended_well(run: Run, disturbed: Sequence[tuple[float, float]]) -> bool:
    if run.code == 0:
        return True
    if run.code != 1 or "Traceback" in run.output or run.last_line.startswith("{"):
        return False
    excused = any(start < run.end and run.start < end + EXCUSED for start, end in disturbed)
    return excused or run.command.split()[0] in UNFINISHED
