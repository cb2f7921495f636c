"""What a text denies of an offer, and what merely negates something in the same sentence."""

from __future__ import annotations

import pytest

from turngate.domain.choosing import denied
from turngate.domain.shapes import Option

PRICES = (Option(id="PART", name="Spare part price"), Option(id="SEARCH", name="Product search"))
DEVICES = (
    Option(id="NET", name="连接与网络", also=("Connection and network",)),
    Option(id="TROUBLE", name="故障排查", also=("Troubleshooting",)),
)
THINGS = (Option(id="EARS", name="无线耳机 Pro"), Option(id="WATCH", name="手表 S3"))
NUMBER = (Option(id="value", name="TG20261107"),)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (DEVICES, "无法连接网络"),
        (DEVICES, "没有网络"),
        (DEVICES, "cannot connect to the network"),
        (PRICES, "I can't find the spare part price"),
        (PRICES, "第二个，不急"),
        (PRICES, "the second one, no rush"),
        (THINGS, "我说的是无线耳机那个"),
        (THINGS, "还没收到的手表"),
        (NUMBER, "TG20261107，还没收到"),
        (NUMBER, "TG20261107 hasn't arrived"),
        (NUMBER, "order no. TG20261107"),
    ],
)
def test_a_complaint_denies_nothing(options: tuple[Option, ...], text: str) -> None:
    assert denied(options, text) == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "not 2",
        "not two",
        "not product search",
        "选项2错了",
        "option 2 is wrong",
        "2号不要",
        "除了第二个",
        "except the second",
        "anything but 2",
        "第二个就算了",
        "不是第二个，是第一个",
        "第二个，不对",
        "the first one, not the second",
    ],
)
def test_what_stands_right_beside_a_denial_is_denied(text: str) -> None:
    assert denied(PRICES, text) == {"SEARCH"}


def test_a_value_is_denied_in_the_same_way() -> None:
    assert denied(NUMBER, "不是 TG20261107") == {"value"}
