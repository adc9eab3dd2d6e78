#!/usr/bin/env python
"""Django's command line for PinPromo."""

import os
import signal
import sys

# These stop cleanly on a signal (pinpromo.stop). Until they are ready for one, it waits.
STOPPABLE = {"expire_promotions", "relay_outbox"}


def main() -> None:
    open_standard_streams()
    if STOPPABLE.intersection(sys.argv[1:2]):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pinpromo.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"manage.py: {error}\n")
        sys.exit(2)


def open_standard_streams() -> None:
    """Put /dev/null where a standard stream is closed, so that no socket gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


if __name__ == "__main__":
    main()
