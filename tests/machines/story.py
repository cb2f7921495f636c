"""The fixture of a story, for every suite that plays turns over the memory adapters."""

from __future__ import annotations

import pytest

from tests.machines.world import WITH_PORTS, TurnWorld


@pytest.fixture
def story(monkeypatch):
    """Makes the world of one story; its promises and its script are checked when the test ends."""
    made: list[TurnWorld] = []

    def make(*answers, **rest) -> TurnWorld:
        world = TurnWorld(answers, **rest)
        for module in WITH_PORTS:
            monkeypatch.setattr(module, "ports", world.ports_of(module))
        world.open_socket()
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()
