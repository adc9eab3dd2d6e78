# Every target prepares what it needs: a fresh clone, Python 3.11 or newer and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help venv demo up down test requirements

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

venv: $(READY) ## create the virtual environment

$(READY): requirements/dev.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if (3, 11) <= v < (3, 15) else "Python 3.11 to 3.14 is needed, this is %d.%d; name another one with: make PYTHON=python3.12" % v[:2])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing; install it (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@echo "Preparing $(VENV) (once, about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

demo: $(READY) ## show the whole system at work on throw-away servers, and check it
	@$(BIN)/python -m devstack demo

up: $(READY) ## keep such a stack running in the background, with the admin on a local port
	@$(BIN)/python -m devstack up

down: $(READY) ## end what `make up` started
	@$(BIN)/python -m devstack down

requirements: $(READY) ## compile requirements/*.in into pinned *.txt
	@cd requirements && for name in base tracing dev; do \
	  ../$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header $$name.in -o $$name.txt; done
