"""The command line: `python -m chaos --help`."""

import argparse
import random
import sys
from pathlib import Path

from chaos import campaign
from chaos.plan import KINDS
from chaos.system import Choice
from devstack.errors import DevstackError
from devstack.program import ROOT

DURATION = 600.0


def main() -> int:
    """Do what the command line says; the exit code."""
    campaign.heed_signals()
    options = _parser().parse_args()
    brokers = {"auto": None, "kafka": True, "embedded": False}
    orders = campaign.Orders(
        duration=options.duration,
        seed=options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000),
        kinds=options.only or tuple(KINDS),
        picture=options.picture,
        logs=options.logs,
        choice=Choice(product=options.product.resolve(), real_kafka=brokers[options.broker]),
    )
    try:
        return campaign.run(orders).exit_code
    except DevstackError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return campaign.FAILED
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos", description="A fault campaign over the whole system.")
    parser.add_argument(
        "--duration", type=float, default=DURATION, metavar="S", help="of faults (default: %(default)g)"
    )
    parser.add_argument("--seed", type=int, help="repeat the schedule of another run (default: a new one)")
    parser.add_argument(
        "--broker", choices=("auto", "kafka", "embedded"), default="auto", help="(default: %(default)s)"
    )
    parser.add_argument("--only", action="append", choices=sorted(KINDS), help="only this kind of fault; repeatable")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="save the timeline there, as SVG")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="save everything that was logged there")
    parser.add_argument("--product", type=Path, default=ROOT, metavar="DIR", help="another tree of the product")
    return parser


if __name__ == "__main__":
    sys.exit(main())
