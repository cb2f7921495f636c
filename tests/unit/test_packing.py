"""Long texts are stored small and come back the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turngate.domain.packing import READABLE_BYTES, pack, unpack


@given(st.text(max_size=2 * READABLE_BYTES))
def test_what_was_packed_comes_back(text):
    assert unpack(pack(text)) == text


def test_a_short_text_stays_readable():
    assert pack("短" * (READABLE_BYTES // 3)) == "短" * (READABLE_BYTES // 3)


def test_a_long_text_is_stored_smaller():
    text = "A refund arrives 3–7 working days after we receive the returned item. " * 20
    assert len(pack(text)) < len(text.encode()) / 2
