"""The judgement on what the programs have logged, on how they ended, and on their memory."""

import json
from collections import Counter
from collections.abc import Iterable

from chaos.parts import Part
from chaos.verdict import Verdict

WARM_UP = 20.0  # seconds of a life after which its memory should not grow
GROWTH = 1.15  # times, and ...
GROWTH_FLOOR = 15.0  # ... megabytes that it may grow all the same


def check(programs: Iterable[Part], verdict: Verdict) -> None:
    """Judge all programs of the product."""
    programs = list(programs)
    verdict.judge(
        "no program ends by itself, and each heeds SIGTERM", [text for part in programs for text in part.complaints]
    )
    verdict.judge("no traceback, no crash in the logs", [text for part in programs for text in _log_breaches(part)])
    verdict.judge("memory stays flat", [text for part in programs for text in _growth(part)])
    levels: Counter[str] = Counter()
    for part in programs:
        for line in part.output().splitlines():
            if line.startswith("{") and (level := _parse(line).get("level")):
                levels[level] += 1
    largest = {part.name: max((size for life in part.memory for _, size in life), default=0) for part in programs}
    verdict.figures.append("log lines: " + ", ".join(f"{count:,} {level}" for level, count in levels.most_common()))
    verdict.figures.append("largest memory: " + ", ".join(f"{name} {size:.0f} MB" for name, size in largest.items()))


def _parse(line: str) -> dict[str, str]:
    try:
        parsed = json.loads(line)
    except ValueError:
        return {"unparsable": line}
    return parsed if isinstance(parsed, dict) else {"unparsable": line}


def _log_breaches(part: Part) -> list[str]:
    """Return the lines that are no JSON, tell of a crash, or carry a traceback."""
    breaches = []
    for line in part.output().splitlines():
        entry = _parse(line)
        if "unparsable" in entry or entry.get("level") == "critical" or _has_traceback(entry):
            breaches.append(f"{part.name}: {line[:400]}")
    return breaches


def _has_traceback(entry: dict[str, str]) -> bool:
    return "\n" in str(entry.get("exception", "")) or "Traceback" in json.dumps(entry)


def _growth(part: Part) -> list[str]:
    breaches = []
    for number, life in enumerate(part.memory, 1):
        warm = [size for age, size in life if age >= WARM_UP]
        if len(warm) < 10:
            continue
        early, late = sorted(warm[: len(warm) // 3 + 1]), sorted(warm[-(len(warm) // 3 + 1) :])
        before, after = early[len(early) // 2], late[len(late) // 2]
        if after > max(before * GROWTH, before + GROWTH_FLOOR):
            breaches.append(f"{part.name}, life {number}: from {before:.0f} to {after:.0f} MB in {life[-1][0]:.0f} s")
    return breaches
