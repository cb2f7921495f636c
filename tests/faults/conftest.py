"""A stack of its own for the tests of this folder: what is broken on purpose here must not disturb other suites."""

from __future__ import annotations

import pytest

from local.stack import ROOT
from tests.faults.bench import bench

NEEDED = (".venvs/emulator", ".venvs/sam", ".venvs/runtime", ".venvs/demo-model")


@pytest.fixture(scope="session")
def attacked(tmp_path_factory):
    """The stack with the fault proxy before its model."""
    for venv in NEEDED:
        if not (ROOT / venv / ".installed").exists():
            pytest.skip(f"{venv} is missing: run `make setup`")
    with bench(tmp_path_factory.mktemp("faults")) as running:
        yield running
