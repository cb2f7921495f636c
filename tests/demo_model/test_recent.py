"""What the server remembers of prompts stays within its room."""

from __future__ import annotations

from local.demo_model.recent import Recent


def _recent(limit):
    made = []

    def make(key):
        made.append(key)
        return key * 10

    return Recent(make, weigh=lambda value: value // 10, limit=limit), made


def test_a_kept_value_is_made_once():
    recent, made = _recent(limit=10)
    assert [recent.get(3), recent.get(3)] == [30, 30]
    assert made == [3]


def test_the_least_recently_used_value_makes_room():
    recent, made = _recent(limit=6)
    for key in (1, 2, 3, 1, 4):  # 4 needs the room of 2 and 3; 1 was used since
        recent.get(key)
    made.clear()
    for key in (1, 4):
        recent.get(key)
    assert made == []
    recent.get(2)
    assert made == [2]


def test_a_value_larger_than_the_room_is_still_answered():
    recent, made = _recent(limit=2)
    assert [recent.get(5), recent.get(5)] == [50, 50]
    assert made == [5]
