"""The mutation check: can the campaign fail? Each mutant breaks one promise, in a copy of the product, and must show.

`python -m chaos.mutants`. The working tree is never touched.
"""

import argparse
import sys

from chaos import campaign
from chaos.mutations import MUTANTS, Mutant, mutate
from chaos.system import Choice
from devstack.errors import DevstackError
from devstack.guarded import GuardedFolder

SEED = 7
DURATION = 40.0


def main() -> int:
    """Run a campaign against each mutant; the exit code: 0 if every one was caught."""
    campaign.heed_signals()
    parser = argparse.ArgumentParser(prog="python -m chaos.mutants", description=main.__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="mutants with this in their name")
    parser.add_argument("--broker", choices=("auto", "embedded"), default="embedded", help="(default: %(default)s)")
    options = parser.parse_args()
    real_kafka = None if options.broker == "auto" else False
    outcomes = {}
    try:
        for mutant in MUTANTS:
            if options.only in mutant.name:
                print(f"\n=== mutant: {mutant.name}", flush=True)
                outcomes[mutant.name] = hunt(mutant, real_kafka=real_kafka)
    except DevstackError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return campaign.FAILED
    except KeyboardInterrupt:
        return 130
    print("\nMutants:")
    for name, caught in outcomes.items():
        print(f"  {'caught ' if caught else 'ESCAPED'}  {name}")
    return 0 if all(outcomes.values()) else 1


def hunt(mutant: Mutant, *, real_kafka: bool | None) -> bool:
    """Return whether a campaign against `mutant` finds the promise broken that it breaks."""
    folder = GuardedFolder("mutant")
    try:
        mutate(mutant, folder.path)
        outcome = campaign.run(
            campaign.Orders(
                duration=DURATION,
                seed=SEED,
                kinds=mutant.kinds,
                choice=Choice(product=folder.path, real_kafka=real_kafka),
            )
        )
    finally:
        folder.close()
    return any(promise.startswith(mutant.breaks) for promise in outcome.verdict.broken)


if __name__ == "__main__":
    sys.exit(main())
