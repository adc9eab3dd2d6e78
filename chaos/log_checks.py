"""The judgement on what the programs have logged and on how they ended."""

import json
from collections import Counter
from collections.abc import Iterable

from chaos.parts import Part
from chaos.verdict import Verdict


def check(programs: Iterable[Part], verdict: Verdict) -> None:
    """Judge all programs of the product."""
    programs = list(programs)
    verdict.judge(
        "no program ends by itself, and each heeds SIGTERM", [text for part in programs for text in part.complaints]
    )
    verdict.judge("no traceback, no crash in the logs", [text for part in programs for text in _log_breaches(part)])
    levels: Counter[str] = Counter()
    for part in programs:
        for line in part.output().splitlines():
            if line.startswith("{") and (level := _parse(line).get("level")):
                levels[level] += 1
    verdict.figures.append("log lines: " + ", ".join(f"{count:,} {level}" for level, count in levels.most_common()))


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
