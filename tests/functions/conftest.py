from tests.machines.story import story

__all__ = ["story"]
