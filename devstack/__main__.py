"""The command line: `python -m devstack --help`."""

import argparse
import sys

from devstack import up
from devstack.demo import SEED, demo
from devstack.errors import DevstackError
from devstack.run import run


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.do(options))
    except DevstackError as error:
        print(f"devstack: {error}", file=sys.stderr)
    except FileNotFoundError as error:
        print(f"devstack: {error.filename}: no such program", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devstack", description="Servers for development and tests.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_run(actions)
    _add_demo(actions)
    for name, do, text in (
        ("up", up.up, "keep the demonstration's stack running in the background"),
        ("down", up.down, "end what `up` started"),
        ("serve", up.serve, "be the stack that `up` starts (not for the command line)"),
    ):
        actions.add_parser(name, help=text).set_defaults(do=lambda _options, do=do: do())
    return parser


def _add_demo(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    action = actions.add_parser("demo", help="show the whole system at work, and check it")
    action.add_argument("--seed", type=int, default=SEED, help="another data set (default: %(default)s)")
    action.set_defaults(do=lambda options: demo(seed=options.seed))


def _add_run(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    action = actions.add_parser("run", help="run a command with a PostgreSQL and a broker around it")
    action.add_argument("--real-kafka", action="store_true", help="Apache Kafka (Java, Maven) as the broker")
    action.add_argument("command", nargs="+", metavar="-- COMMAND", help="the command and its arguments")
    action.set_defaults(do=lambda options: run(options.command, real_kafka=options.real_kafka))


if __name__ == "__main__":
    sys.exit(main())
