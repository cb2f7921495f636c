# Turngate: what one runs. `make` alone lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
PY := PYTHONPATH=.:layers/turngate $(VENV)/bin/python
PYTEST := $(VENV)/bin/pytest
MEASURED := $(PY) -m tools.measured
LAYERS := base search identity
VENVS := $(VENV) .venvs/emulator .venvs/sam .venvs/runtime .venvs/demo-model
# what `make bench` compares us with; no part of the set-up. Empty (`make bench PEERS=`) leaves peers out
PEERS := langgraph
BENCH := .venvs/bench
# every folder of tests/, the quick ones first; `make check` fails when one is missing here
SUITES := tests/unit tests/protocol tests/machines tests/functions tests/wire tests/governance tests/examples \
          tests/tools tests/template tests/contract tests/model tests/demo_model tests/emulator tests/races \
          tests/stack tests/faults tests/browser

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

# ── set up ──────────────────────────────────────────────────────────────────────────────────────────────────────
setup: $(VENVS:%=%/.installed)  ## install what demo, demo-check and the suites need (pip only, no root)

setup-system:  ## Debian packages for the browser tests: Chromium and a Chinese font (root)
	@if command -v chromium >/dev/null && [ -n "$$(fc-list :lang=zh 2>/dev/null)" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	  echo "setup-system: needs root and apt; install Chromium and a CJK font yourself"; exit 1; fi; \
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends chromium fontconfig fonts-wqy-microhei

# one venv for each tool that pins its own botocore; made anew only when its lock file changes
define venv
$(1)/.installed: requirements/$(2).txt
	$(PYTHON) -m venv $(1)
	$(1)/bin/pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/$(2).txt
	touch $$@
endef
$(eval $(call venv,$(VENV),dev))
$(eval $(call venv,.venvs/emulator,emulator))
$(eval $(call venv,.venvs/sam,sam))
$(eval $(call venv,.venvs/runtime,runtime))
$(eval $(call venv,.venvs/demo-model,demo-model))
$(eval $(call venv,$(BENCH),bench))

lock:  ## resolve all requirements anew into lock files with hashes (needs uv)
	for name in dev emulator sam runtime demo-model bench; do \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras \
	    --no-header -q requirements/$$name.in -o requirements/$$name.txt; done
	for name in $(LAYERS); do \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras \
	    --no-header --no-annotate -q -c requirements/dev.txt requirements/layer-$$name.in \
	    -o layers/dependencies/$$name/requirements.txt; done

doctor:  ## say what this machine has and lacks
	@$(PYTHON) tools/doctor.py

# ── use ─────────────────────────────────────────────────────────────────────────────────────────────────────────
demo: setup  ## the whole product on 127.0.0.1, with a chat page; Ctrl-C stops it
	@exec env PYTHONPATH=.:layers/turngate $(VENV)/bin/python -m local.demo

demo-check: setup  ## what the demo shows, without a browser
	@$(MEASURED) $(VENV)/bin/python -m local.demo_check

deploy:  ## build and deploy to your AWS account: make deploy ENV=dev
	.venvs/sam/bin/sam build && .venvs/sam/bin/sam deploy --config-env $(or $(ENV),default)

# ── check ───────────────────────────────────────────────────────────────────────────────────────────────────────
lint: $(VENV)/.installed  ## format and lint, mending what can be mended
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

check: $(VENV)/.installed  ## everything static: format, lint, types, layers, generated files, the inventory's marks
	@diff <(printf '%s\n' $(SUITES) | sort) <(find tests -mindepth 1 -maxdepth 1 -type d -not -name '__*' | sort) \
	  || { echo "SUITES in the Makefile and the folders of tests/ differ"; exit 1; }
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	PYTHONPATH=.:layers/turngate $(VENV)/bin/lint-imports
	$(PY) -m tools.features --check
	$(PY) -m tools.machine_diagrams --check
	$(PY) -m tools.aws_data --check

features: $(VENV)/.installed  ## covered/total of the inventory, per group and layer
	@$(PY) -m tools.features

test: setup  ## check, then every suite this machine can run; what it cannot is named with what to install
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory setup-system || true
	@$(MEASURED) $(PYTEST) $(SUITES)

test-unit: $(VENV)/.installed  ## domain and protocol, under a minute, no network
	$(PYTEST) tests/unit tests/protocol

test-machines: $(VENV)/.installed  ## the real state machine and handlers over memory adapters
	$(PYTEST) tests/machines tests/functions tests/wire

test-model: $(VENV)/.installed  ## every interleaving of the turn protocol, then every guard removed (about 5 min, 3 GB)
	@$(MEASURED) $(VENV)/bin/python -m tests.model

test-races: setup  ## threads, crashes and late workers on the emulator's DynamoDB, then mutants (about 5 min)
	@$(MEASURED) $(VENV)/bin/python -m tests.races

test-faults: setup  ## every fault at every call of the spine, on the stack (about 40 min)
	@$(MEASURED) $(VENV)/bin/python -m tests.faults.matrix
	@REPLAY_BUSY_S=60 $(PYTEST) tests/faults/test_replay.py -s

test-stack: setup  ## the deployed template on the emulator
	$(PYTEST) tests/stack

test-browser: setup  ## the chat page in headless Chromium
	$(PYTEST) tests/browser

bench: $(VENV)/.installed $(if $(PEERS),$(BENCH)/.installed)  ## our ratios against bench/budget.json, in one run (about 1 min; PEERS= without peers)
	@$(PY) -m bench $(PEERS)

hit-rate: setup  ## right document in the top 5, for the bank's thirty questions
	$(PY) -m tools.hit_rate

screenshots: setup  ## docs/screenshots from the real demo, by hand
	$(PY) -m tests.browser.screenshots

.PHONY: help setup setup-system lock doctor demo demo-check deploy lint check features test test-unit test-machines \
        test-model test-races test-faults \
        test-stack test-browser bench hit-rate screenshots
