# Every target sets up what it needs: the only prerequisites are make and Python 3.11 or newer.
#   make demo         serve the samples, then land 200,000 messages in tables on Spark, report, query, redrive
#   make serve        serve the sample catalog on http://127.0.0.1:8080/ until Ctrl+C  (ARGS='--port 9000')
#   make test         what a change must pass: check and the tests  (COVERAGE=1 measures what they cover)
#   make check        ruff, mypy --strict, import-linter
#   make integration  the registry tests on a real PostgreSQL, the long proofs, real brokers, a cluster
#   make bench        measure and print the figures of every bench/  (BENCH=registry ARGS=--quick for one of them)
#   make soak         every slow test, the property runs at full length among them, and a siege of ten minutes
#   make lock         choose newer versions of the dependencies
#   make clean        remove everything that was set up

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SUITES := .cache/suites/.ready
ARGS   ?=
COVERAGE ?=
BENCH  ?= registry cloudevents schemas bounds match confluent
# Tests share the machine with the servers they start, so one worker a core and not more.
JOBS   ?= auto
# Where a machine forbids it, every one of the hundreds of processes that the tests start would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo serve test tests check format integration bench soak docs lock clean

help:
	@sed -n '2,10s/^#   //p' Makefile

$(READY): pyproject.toml requirements.lock requirements-amqp.lock requirements-uv.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Signalbook needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make a virtual environment; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV) (once, about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-amqp.lock 2>/dev/null || \
	  echo "python-qpid-proton could not be built (it needs a C compiler and Python's headers): no tests of AMQP clients"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps -e .
	@touch $@

$(SUITES): requirements-suites.lock | $(READY)
	@mkdir -p $(@D)
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps --no-binary :all: \
	  --dest $(@D) -r requirements-suites.lock
	@touch $@

demo: $(READY)
	@$(BIN)/python -m examples.demo $(ARGS)

serve: $(READY)
	@mkdir -p .cache
	@$(BIN)/signalbook load samples --store .cache/samples.db --quiet
	@$(BIN)/signalbook serve --store .cache/samples.db $(ARGS)

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# `tests` is the plain run for daily work: make tests ARGS='tests/cli -k load'
# With COVERAGE=1 it measures as it runs, and holds every package to its gate; CI does that.
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup --no-loadscope-reorder -m 'not slow and not postgres and not broker'
tests: $(READY) $(SUITES)
ifeq ($(COVERAGE),)
	@$(PYTEST) $(ARGS)
else
	@rm -f .coverage .coverage.*
	@$(PYTEST) --cov --cov-report= $(ARGS)
	@$(BIN)/python scripts/coverage_gates.py
endif

test: check tests

integration: $(READY)
	@scripts/integration.sh $(ARGS)

bench: $(READY)
	@missed=; for name in $(BENCH); do echo "== $$name"; $(BIN)/python bench/$$name.py $(ARGS) || missed="$$missed $$name"; done; \
	  if [ -n "$$missed" ]; then echo "a figure missed its limit in:$$missed" >&2; exit 1; fi

soak: $(READY)
	@SIGNALBOOK_TEST_PROFILE=$${SIGNALBOOK_TEST_PROFILE:-random} $(BIN)/python -m pytest -q -m slow --timeout=3600 $(ARGS)
	@$(BIN)/python -m scripts.siege
	@test -z "$$SIGNALBOOK_TEST_POSTGRES" || $(BIN)/python -m scripts.siege --postgres "$$SIGNALBOOK_TEST_POSTGRES"

docs: $(READY)
	@$(BIN)/python scripts/write_cli_reference.py
	@$(BIN)/python scripts/write_spec_reference.py
	@$(BIN)/python -m scripts.write_conformance

lock: $(READY)
	@$(BIN)/uv pip compile pyproject.toml --extra postgres --group dev --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' -q -o requirements.lock
	@$(BIN)/uv pip compile --group amqp --constraint requirements.lock --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' -q -o requirements-amqp.lock
	@if command -v npm >/dev/null; then cd tests/integration/clients && npm install --package-lock-only \
	  --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund; fi
	@echo uv | $(BIN)/uv pip compile - --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' -q -o requirements-uv.lock

clean:
	rm -rf $(VENV) .cache .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
