#!/usr/bin/env python
"""Django's command line for PinPromo."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pinpromo.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"manage.py: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
