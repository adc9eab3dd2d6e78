"""The end of a campaign: wait until everything has come to rest, stop it, and judge."""

import threading
import time

import psycopg

from chaos import lateness, log_checks, memory, state_checks, topic, topic_checks
from chaos.ledger import BOTH, DELIVERY, Ledger
from chaos.parts import common_absences
from chaos.plan import RELAYS, WORKERS
from chaos.state_checks import State
from chaos.system import KINDS, System
from chaos.telling import TOPIC
from chaos.verdict import Verdict

CONSUMERS_SECONDS = 20.0
_UNFINISHED = """
SELECT (SELECT count(*) FROM promotion.promotion_purchases
        WHERE status = 'Active' AND ends_at < now() + interval '1 hour')
     + (SELECT count(*) FROM promotion.outbox WHERE published_at IS NULL)
"""


def await_rest(system: System, *, seconds: float) -> bool:
    """Wait until nothing ends within the hour, nothing is pending, and the consumers know it all; whether it came.

    Consumers that know better for CONSUMERS_SECONDS after all else is done are not waited for.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(1.0)
        try:
            with psycopg.connect(system.url, connect_timeout=5) as connection:
                if connection.execute(_UNFINISHED).fetchone() != (0,):
                    continue
                if _consumers_agree(system, connection):
                    return True
                deadline = min(deadline, time.monotonic() + CONSUMERS_SECONDS)
        except psycopg.Error:
            continue
    return False


def _consumers_agree(system: System, connection: psycopg.Connection) -> bool:
    return all(
        topic_checks.true_boosts(connection, kind) == topic_checks.believed_boosts(system.store(name))
        for name, kind in KINDS.items()
    )


def stop_programs(system: System, verdict: Verdict) -> None:
    """Stop the product by SIGTERM, all at once, as an orchestrator does; nothing of it may be left."""
    family = [process for part in system.programs.values() for process in part.family()]
    stopping = [threading.Thread(target=part.terminate, kwargs={"again": False}) for part in system.programs.values()]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join()
    verdict.judge("no process is left", [str(process) for process in family if process.is_running()])


def judge(system: System, ledger: Ledger, verdict: Verdict, *, allowance: float) -> None:
    """Let every check speak."""
    _note_absences(system, ledger)
    with psycopg.connect(system.url) as connection:
        state = State(connection)
        records = topic.read(system.bootstrap, {TOPIC, *(event["topic"] for event in state.events)})
        state_checks.check(state, ledger, verdict)
        topic_checks.check(state, records, ledger, verdict)
        for name, kind in KINDS.items():
            topic_checks.check_boosts(connection, kind, system.store(name), verdict)
    lateness.check(state, records, ledger, allowance=allowance, verdict=verdict)
    log_checks.check(system.programs.values(), verdict)
    memory.check(system.programs.values(), verdict)


def _note_absences(system: System, ledger: Ledger) -> None:
    for names, scope in ((WORKERS, BOTH), (RELAYS, DELIVERY)):
        for start, end in common_absences([system.parts[name] for name in names]):
            ledger.disturb(start, end, scope, f"all of {', '.join(names)} were out of service")
