"""Whoever writes a tenant's files is told which file is wrong, where in it, and what would be right."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from local.tenants import MALL, Loader, TenantError, private_collections, read_document, read_tenant
from turngate.adapters.knowledge_files import DirectoryFiles
from turngate.adapters.memory.embedder import HashingEmbedder
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.errors import RefusedError

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


def tenant_with(tmp_path: Path, collections: str | bytes | None) -> Path:
    """A tenant's folder with two collections, `a-kb` and `b-kb`, and this collections.json."""
    for name in ("a-kb", "b-kb"):
        (tmp_path / "documents" / name).mkdir(parents=True)
    (tmp_path / "documents" / ".DS_Store").write_bytes(b"")
    if collections is not None:
        content = collections if isinstance(collections, bytes) else collections.encode()
        (tmp_path / "collections.json").write_bytes(content)
    return tmp_path


@pytest.mark.covers("F-123")
@pytest.mark.parametrize(
    ("collections", "private"),
    [
        (None, set()),
        ('{"a-kb": {"public": true}, "b-kb": {"public": false}}', {"b-kb"}),
        ('{"a-kb": {"public": false}, "b-kb": {"public": false}}', {"a-kb", "b-kb"}),
    ],
)
def test_a_tenant_says_which_collections_are_private(tmp_path, collections, private) -> None:
    assert private_collections(tenant_with(tmp_path, collections)) == private


@pytest.mark.covers("F-123")
@pytest.mark.parametrize(
    ("collections", "told"),
    [
        ("[]", ["must be an object of collections"]),
        ("{", ["no JSON text"]),
        (b"\xff\xfe{}", ["no JSON text"]),
        ('{"a-kb": true, "b-kb": {"public": true}}', ['a-kb: must be {"public": true} or {"public": false}']),
        ('{"a-kb": {}, "b-kb": {"public": true}}', ["a-kb: must be"]),
        ('{"a-kb": {"public": "false"}, "b-kb": {"public": true}}', ["a-kb.public: must be true or false"]),
        ('{"a-kb": {"public": 0}, "b-kb": {"public": null}}', ["a-kb.public", "b-kb.public"]),
        (
            '{"a-kb": {"public": true, "privat": true}, "b-kb": {"public": true}}',
            ["a-kb.privat: unknown field"],
        ),
        (
            '{"a-kb": {"public": true}, "b_kb": {"public": false}}',
            ["b_kb: there is no folder documents/b_kb", "b-kb: not named here: say whether it is public"],
        ),
        ("{}", ["a-kb: not named", "b-kb: not named"]),
        (
            '{"a-kb": {"public": false}, "a-kb": {"public": true}, "b-kb": {"public": true}}',
            ["a-kb: given twice"],
        ),
    ],
)
def test_no_slip_in_a_list_of_collections_makes_one_public(tmp_path, collections, told) -> None:
    with pytest.raises(TenantError) as refused:
        private_collections(tenant_with(tmp_path, collections))
    assert all(each in str(refused.value) for each in [str(tmp_path / "collections.json"), *told])


def test_a_folder_whose_name_is_no_id_is_named(tmp_path: Path) -> None:
    (tenant_with(tmp_path, None) / "documents" / "our papers").mkdir()
    (tmp_path / "config.json").write_bytes((MALL / "config.json").read_bytes())
    with pytest.raises(TenantError, match="no names of collections: our papers"):
        read_tenant(tmp_path)


def test_a_folder_without_documents_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((MALL / "config.json").read_bytes())
    with pytest.raises(TenantError, match="documents: no such folder"):
        read_tenant(tmp_path)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("enabeld: false\n", "enabeld: no field of a front matter"),
        ("text: other\n", "text: no field of a front matter"),
        ("topic: a\ntopic: b\n", "topic: given twice"),
    ],
)
def test_a_front_matter_holds_each_field_once_and_no_other(tmp_path: Path, lines: str, told: str) -> None:
    path = tmp_path / "d.md"
    path.write_text(FRONT_MATTER.format(lines), encoding="utf-8")
    with pytest.raises(TenantError) as caught:
        read_document(path)
    assert str(caught.value) == f"{path}: {told}"


def test_a_configuration_says_nothing_twice(tmp_path: Path) -> None:
    shutil.copytree(MALL, tmp_path / "mall")
    path = tmp_path / "mall" / "config.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"account":', '"account": "other", "account":', 1), encoding="utf-8")
    with pytest.raises(TenantError) as caught:
        read_tenant(tmp_path / "mall")
    assert str(caught.value) == f"{path}: account: given twice"


def test_other_documents_are_never_loaded_under_a_version_that_is_there(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("local.tenants.BUILT", tmp_path / "built")
    config, collections = read_tenant(MALL)
    loader = Loader(MemoryConversationStore(), DirectoryFiles(tmp_path / "bucket"), HashingEmbedder())
    loader.load(config, collections)
    loader.load(config, collections)
    changed = {**collections, "support-kb": collections["support-kb"][1:]}
    with pytest.raises(RefusedError) as caught:
        loader.load(config, changed)
    assert caught.value.code == "knowledge_version_exists"
    (tmp_path / "bucket" / "mall" / "support-kb" / "1.sqlite").write_bytes(b"of another format")
    with pytest.raises(TenantError, match="support-kb: version 1 is there and cannot be read"):
        loader.load(config, collections)
