from __future__ import annotations

import pytest

from tests.protocol.promises import violations
from tests.protocol.world import World


@pytest.fixture
def world():
    world = World()
    yield world
    assert violations(world.items) == []
