"""The campaign: run the system, break it by the schedule, heal it, wait until it is done, and judge."""

import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from chaos import clock, ending, one_offs, prober, timeline
from chaos.adversary import Adversary
from chaos.crew import Crew
from chaos.database_faults import DatabaseFaults
from chaos.faults import Stage
from chaos.ledger import Ledger
from chaos.plan import ELDEST, KINDS, NEED_LASTING_BROKER, schedule
from chaos.system import INTERVAL, Choice, System
from chaos.verdict import Verdict
from devstack.kafka import EmbeddedKafka

ALLOWANCE = 2 * INTERVAL + 3.0  # seconds; the 3 are for a machine of two cores that is busy with all of this
DRAIN_SECONDS = 120.0  # for everything to come to rest once all is healed
WARM_UP_SECONDS = 5.0  # before the first fault
BROKEN, FAILED = 1, 3  # exit codes


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the command line asks for."""

    duration: float
    seed: int
    kinds: Collection[str] = tuple(KINDS)
    picture: Path | None = None
    logs: Path | None = None
    choice: Choice = field(default_factory=Choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The verdict, and what went wrong with the campaign itself."""

    verdict: Verdict
    troubles: list[str]

    @property
    def exit_code(self) -> int:
        """0 if every promise was kept, 1 if not, 3 if the campaign itself failed."""
        if self.troubles:
            return FAILED
        return 0 if self.verdict.good else BROKEN


def heed_signals() -> None:
    """Let Ctrl-C end a campaign also in the background of a script, and SIGTERM clean up too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def run(orders: Orders) -> Outcome:
    """Run it and report on it."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    ledger, verdict = Ledger(), Verdict()
    say(f"seed {orders.seed}, {orders.duration:g} s of faults; starting everything ...")
    with ExitStack() as running:
        system = running.enter_context(System(orders.choice))
        say(_broker_line(system))
        crew = Crew(system, ledger, orders.seed)
        crew.start()
        time.sleep(WARM_UP_SECONDS)
        adversary = _break(system, crew, ledger, orders, say)
        crew.rest()
        say("all is healed; waiting until everything has ended and arrived")
        say("at rest" if ending.await_rest(system, seconds=DRAIN_SECONDS) else f"NOT at rest after {DRAIN_SECONDS:g} s")
        crew.stop()
        ending.stop_programs(system, verdict)
        ending.judge(system, ledger, verdict, allowance=ALLOWANCE)
        prober.check(crew.prober.probes, system.programs, verdict)
        one_offs.check(crew.commands, ledger, verdict)
        if orders.logs:
            system.save_logs(orders.logs)
        if orders.picture:
            _draw(orders.picture, orders, system, crew, ledger)
            say(f"timeline: {orders.picture}")
    troubles = [*crew.troubles(), *adversary.errors]
    _report(ledger, verdict, troubles)
    words = "Every promise was kept." if verdict.good else "PROMISES WERE BROKEN."
    print(f"\n{words} Seed {orders.seed} runs this schedule again.")
    return Outcome(verdict=verdict, troubles=troubles)


def _break(system: System, crew: Crew, ledger: Ledger, orders: Orders, say: Callable[[str], None]) -> Adversary:
    stage = Stage(
        parts=system.parts,
        postgres=system.postgres,
        broker=system.broker,
        to_postgres=system.to_postgres,
        to_broker=system.to_broker,
        database=DatabaseFaults(system.url, crew.writer, ledger),
        disk=system.disk,
        clock=system.clock,
        missing_topics=crew.missing_topics,
    )
    kinds = set(orders.kinds) - _impossible(system, say)
    adversary = Adversary(stage, ledger, say)
    began = time.monotonic()
    adversary.run(schedule(seed=orders.seed, duration=orders.duration, kinds=kinds), began=began)
    time.sleep(max(0.0, began + orders.duration - time.monotonic()))
    adversary.finish()
    return adversary


def _impossible(system: System, say: Callable[[str], None]) -> set[str]:
    """Return the kinds of faults that are left out here, and say why."""
    kinds: set[str] = set()
    if not system.lasting_broker:
        kinds |= NEED_LASTING_BROKER
        say(f"left out, since this broker would forget everything: {', '.join(sorted(kinds))}")
    if system.disk.lacks:
        kinds.add("fill-disk")
        say(f"left out, since no small file system can be mounted here: fill-disk ({system.disk.lacks})")
    if lack := clock.missing():
        kinds.add("clock-jump")
        say(f"left out, since no program can be given a clock of its own here: clock-jump ({lack})")
    return kinds


def _broker_line(system: System) -> str:
    version = f" {system.broker.version}" if isinstance(system.broker, EmbeddedKafka) else ""
    broker = f"{system.broker.name}{version} on {system.broker.address}"
    if not system.lasting_broker:
        broker = f"NOT a real Kafka but {broker}" + (f" ({system.lacks})" if system.lacks else "")
    return f"PostgreSQL on {system.postgres.address}, {broker}"


def _draw(path: Path, orders: Orders, system: System, crew: Crew, ledger: Ledger) -> None:
    faults, broker = len(ledger.timeline), f"{system.broker.name} {getattr(system.broker, 'version', '')}".strip()
    title = f"Fault campaign: {faults} faults in {orders.duration:g} s, seed {orders.seed}, {broker}"
    memory = [(name, [size for life in system.parts[name].memory for size in life]) for name in ELDEST]
    timeline.draw(path, title, crew.sampler.samples, memory, ledger.timeline)


def _report(ledger: Ledger, verdict: Verdict, troubles: list[str]) -> None:
    print("\nFaults injected and survived:")
    for kind in sorted(ledger.injected.keys() | ledger.impossible.keys()):
        impossible = f" ({ledger.impossible[kind]} not possible at their time)" if ledger.impossible[kind] else ""
        print(f"  {ledger.injected[kind]:>4} {kind}{impossible}")
    print(f"  {ledger.injected.total():>4} in all\nFigures:")
    for figure in verdict.figures:
        print(f"  {figure}")
    print("Promises:")
    for line in verdict.lines():
        print(line)
    for trouble in troubles:
        print(f"\nThe campaign itself failed:\n{trouble}")
