"""Two emulators for the whole suite: one with every patch, one with none."""

import pytest

from tests.emulator.world import skip_without_setup, world


@pytest.fixture(scope="session")
def patched(tmp_path_factory):
    """The emulator as the product uses it."""
    skip_without_setup()
    with world(tmp_path_factory, "patched") as running:
        yield running


@pytest.fixture(scope="session")
def stock(tmp_path_factory):
    """The same release without any patch: what the contracts must be able to see through."""
    skip_without_setup()
    with world(tmp_path_factory, "stock", without=frozenset({"all"})) as running:
        yield running


@pytest.fixture
def faulty(patched):
    """The patched emulator, with all fault rules dropped before and after."""
    patched.emulator.clear_faults()
    yield patched
    patched.emulator.clear_faults()
