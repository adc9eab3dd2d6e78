"""Was everything in time? A purchase may wait for the end of a disturbance, and then for two intervals, no longer."""

from collections.abc import Sequence
from statistics import quantiles

from chaos.ledger import Disturbance, Ledger
from chaos.records import Record
from chaos.state_checks import State
from chaos.verdict import Verdict


def merged(disturbances: Sequence[Disturbance], scope: str) -> list[tuple[float, float]]:
    """Return the disturbed times of a scope, in order, overlapping ones made one."""
    spans = sorted((one.start, one.end) for one in disturbances if scope in one.scope)
    result: list[tuple[float, float]] = []
    for start, end in spans:
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def deadline(ready: float, allowance: float, disturbed: Sequence[tuple[float, float]]) -> float:
    """Return when it must have happened: `allowance` after `ready`, or after what disturbed it in that time."""
    for start, end in disturbed:
        if end > ready and start < ready + allowance:
            ready = end
    return ready + allowance


def undisturbed(ready: float, allowance: float, disturbed: Sequence[tuple[float, float]]) -> bool:
    """Return whether nothing excuses lateness."""
    return deadline(ready, allowance, disturbed) == ready + allowance


def check(state: State, records: list[Record], ledger: Ledger, *, allowance: float, verdict: Verdict) -> None:
    """Judge when each expiry was recorded, and when each event first reached the topic."""
    for_expiry, for_delivery = merged(ledger.disturbances, "expiry"), merged(ledger.disturbances, "delivery")
    expiry, calm_expiry = [], []
    breaches = []
    for id_, row in state.purchases.items():
        told = [event["created_at"] for event in state.events_of[id_] if event["status"] == "Expired"]
        if row["status"] != "Expired" or not told:
            continue
        ready = max(row["ends_at"], ledger.ready_since.get(id_, 0.0))
        expiry.append(told[0] - ready)
        if undisturbed(ready, allowance, for_expiry):
            calm_expiry.append(told[0] - ready)
        if (late := told[0] - deadline(ready, allowance, for_expiry)) > 0:
            breaches.append(
                f"{id_} was ready at {ready:.1f} and expired {told[0] - ready:.1f} s later, {late:.1f} s too late"
            )
    verdict.judge(f"every expiry within {allowance:g} s of its time, or of the end of what hindered it", breaches)
    arrived: dict[str, float] = {}
    for record in records:
        event_id = record.headers.get("ce_id", "")
        arrived[event_id] = min(record.at, arrived.get(event_id, record.at))
    delivery, calm_delivery = [], []
    breaches = []
    for event in state.events:
        if (at := arrived.get(str(event["event_id"]))) is None:
            continue
        ready = max(event["created_at"], ledger.requeued.get(event["event_id"], 0.0))
        delivery.append(at - ready)
        if undisturbed(ready, allowance, for_delivery):
            calm_delivery.append(at - ready)
        if (late := at - deadline(ready, allowance, for_delivery)) > 0:
            breaches.append(
                f"{event['id']} was recorded at {ready:.1f} and arrived {at - ready:.1f} s later, {late:.1f} s too late"
            )
    verdict.judge(f"every event in the topic within {allowance:g} s, or of the end of what hindered it", breaches)
    verdict.figures.append(f"from due (or healed) to expired: {_spread(expiry)}; undisturbed {_spread(calm_expiry)}")
    verdict.figures.append(f"from recorded to the topic: {_spread(delivery)}; undisturbed {_spread(calm_delivery)}")


def _spread(seconds: list[float]) -> str:
    if len(seconds) < 2:
        return "too few"
    cuts = quantiles(seconds, n=100)
    return f"{len(seconds):,} times, median {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s, longest {max(seconds):.2f} s"
