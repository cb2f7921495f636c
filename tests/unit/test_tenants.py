"""Whoever writes a tenant's files is told which file is wrong, where in it, and what would be right."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from local.tenants import MALL, TenantError, read_document, read_tenant

if TYPE_CHECKING:
    from pathlib import Path

FRONT_MATTER = "---\ndocument_id: d\ntitle: T\n{}---\nSeven days.\n"


def test_a_wrong_configuration_is_named_by_file_place_and_what_is_allowed(tmp_path: Path) -> None:
    shutil.copytree(MALL, tmp_path / "mall")
    path = tmp_path / "mall" / "config.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["contract"][1]["risk"] = "L9"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(TenantError) as told:
        read_tenant(tmp_path / "mall")
    assert str(told.value) == f"{path}: contract[1].risk: not one of L0, L1, L2, L3, L4"


def test_a_front_matter_is_words_read_as_what_the_field_is(tmp_path: Path) -> None:
    path = tmp_path / "d.md"
    path.write_text(
        FRONT_MATTER.format("enabled: false\nfile_date: 2026-01-31\nversion: 2\n"), encoding="utf-8"
    )
    read = read_document(path)
    assert (read.enabled, str(read.file_date), read.version, read.text) == (
        False,
        "2026-01-31",
        "2",
        "Seven days.",
    )


@pytest.mark.parametrize(
    ("line", "field"), [("enabled: perhaps", "enabled"), ("file_date: yesterday", "file_date")]
)
def test_a_front_matter_that_cannot_be_read_is_named_by_file_and_field(
    tmp_path: Path, line: str, field: str
) -> None:
    path = tmp_path / "d.md"
    path.write_text(FRONT_MATTER.format(f"{line}\n"), encoding="utf-8")
    with pytest.raises(TenantError) as told:
        read_document(path)
    assert str(path) in str(told.value) and field in str(told.value)
