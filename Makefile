# Every target prepares what it needs: a fresh clone, Python 3.11 or newer and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: audit bench chaos chaos-mutants help venv check lint test coverage test-devstack test-kafka test-monitoring test-system test-browser dashboard-image demo up down requirements

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

# Settings for checks that read the configuration but open no connection.
OFFLINE := DATABASE_URL=postgres://nobody@127.0.0.1/none SECRET_KEY=$$(head -c 64 /dev/urandom | od -An -tx1 | tr -d " \n") PINPROMO_ENV_FILE=

check: lint coverage ## all that CI checks first: lint, types, imports, migrations, deployment, tests with coverage

lint: $(READY) ## everything of `check` but the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(OFFLINE) $(BIN)/mypy
	$(BIN)/lint-imports
	$(OFFLINE) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(OFFLINE) ALLOWED_HOSTS=example.com $(BIN)/python manage.py check --deploy --fail-level WARNING
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
	$(BIN)/shellcheck .ci/run .ci/packages

# What needs more than Python runs by a target of its own.
QUICK := not kafka and not system and not browser and not prometheus

test: $(READY) ## run the tests; PostgreSQL and a small broker start by themselves
	@$(BIN)/pytest -m "$(QUICK)" --ignore=tests/devstack

coverage: $(READY) ## the tests, with branch coverage
	@$(BIN)/pytest -m "$(QUICK)" --ignore=tests/devstack --cov --cov-report=term

test-devstack: $(READY) ## the tests of the embedded servers themselves
	@$(BIN)/pytest -m "not kafka" tests/devstack

test-kafka: $(READY) ## repeat the broker's tests with a real Apache Kafka (needs Java 17 and Maven)
	@$(BIN)/pytest --real-kafka -m "kafka or broker"

test-system: $(READY) ## behind PgBouncer, on a full disk, with a wall clock that jumps (Debian: apt-get install pgbouncer faketime)
	@for tool in pgbouncer faketime; do command -v $$tool >/dev/null || { \
	  echo "$$tool is missing; install it (Debian: apt-get install pgbouncer faketime)" >&2; exit 1; }; done
	@$(BIN)/pytest -m system

test-monitoring: $(READY) ## the alerts, with promtool, and live with Prometheus and Alertmanager (about a minute)
	@for tool in prometheus promtool amtool; do command -v $$tool >/dev/null || { \
	  echo "$$tool is missing; install it (Debian: apt-get install prometheus prometheus-alertmanager)" >&2; exit 1; }; done
	@$(BIN)/pytest -m prometheus

test-browser: $(READY) ## the operators' pages in a real browser (needs Chromium)
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
	  echo "chromium is missing; install it (Debian: apt-get install chromium)" >&2; exit 1; }
	@$(BIN)/pytest -m browser

dashboard-image: $(READY) ## draw docs/images/promotion-overview.png from live data (needs Prometheus; three minutes)
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/charts.txt
	@$(BIN)/python -m bench.draw_dashboard

bench: $(READY) ## measure against floors and peers, write docs/performance.md (SIZE=small: only print, in a few minutes)
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/charts.txt
	@$(BIN)/python -m bench --size $(or $(SIZE),full)

audit: $(READY) ## look the pinned packages up in PyPI's list of known vulnerabilities (needs the internet)
	@$(BIN)/pip-audit --strict --disable-pip --no-deps -r requirements/base.txt -r requirements/tracing.txt

demo: $(READY) ## show the whole system at work on throw-away servers, and check it
	@$(BIN)/python -m devstack demo

up: $(READY) ## keep such a stack running in the background, with the admin on a local port
	@$(BIN)/python -m devstack up

down: $(READY) ## end what `make up` started
	@$(BIN)/python -m devstack down

EXAMPLES ?= 1000
fuzz: $(READY) ## play EXAMPLES random histories of purchases against a plain model, then four loops for two minutes
	@FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest tests/fuzz
	@FOUR_LOOPS_SECONDS=120 $(BIN)/pytest -s tests/process/test_four_loops.py

DURATION ?= 600
# The whole campaign draws the picture of docs/chaos.md; others draw beside it.
PICTURE ?= docs/images/chaos$(if $(filter 600,$(DURATION)),,-short).svg
chaos: $(READY) ## break the whole system at random for DURATION seconds, heal it, and judge (SEED=... repeats a run)
	@$(BIN)/python -m chaos --duration $(DURATION) --picture $(PICTURE) $(if $(SEED),--seed $(SEED))

chaos-mutants: $(READY) ## check that the campaign can fail: break the product in ten ways, each must be caught
	@$(BIN)/python -m chaos.mutants

COMPILE = uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header
requirements: $(READY) ## compile requirements/*.in, and the peers' of the benchmarks, into pinned *.txt
	@cd requirements && for name in base tracing dev charts; do ../$(BIN)/$(COMPILE) $$name.in -o $$name.txt; done
	@cd bench/peers && ../../$(BIN)/$(COMPILE) requirements.in -o requirements.txt
