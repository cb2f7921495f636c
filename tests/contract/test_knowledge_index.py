"""Every knowledge index finds the same, within its scope and version alone, whatever the question looks like."""

from __future__ import annotations

import io
import logging
import os
import shutil
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from turngate.adapters.indexing import LookedUp, rows_of, search_together
from turngate.adapters.knowledge_files import DirectoryFiles
from turngate.adapters.memory.embedder import HashingEmbedder
from turngate.adapters.memory.knowledge import MemoryKnowledge
from turngate.adapters.s3 import S3Files
from turngate.adapters.sqlite_knowledge import SqliteKnowledge
from turngate.domain.knowledge import Document
from turngate.domain.ranking import DEPTH
from turngate.errors import (
    BrokenInvariantError,
    KnowledgeUnavailableError,
    ModelUnavailableError,
    RefusedError,
    TransientError,
)

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = [
    Document(
        document_id="returns-zh",
        title="退货政策",
        text="商品签收后七天内可以退货，运费由买家承担。",
        source="r.md",
    ),
    Document(
        document_id="returns-en", title="Returns", text="Goods may be returned within seven days of delivery."
    ),
    Document(document_id="invoice-zh", title="发票", text="电子发票在订单完成后三天内发送到邮箱。"),
    Document(
        document_id="shipping-en",
        title="Shipping",
        text="Parcels from warehouse FRA-01 take two days to Berlin.",
    ),
    Document(
        document_id="device-en",
        title="Terminals",
        text="The serial number S55ES0000134 belongs to a card reader.",
    ),
    Document(
        document_id="hours-en", title="Opening hours", text="The shop in Munich is open from nine to six."
    ),
    Document(document_id="points-zh", title="会员积分", text="积分在一年后过期，不能兑换现金。"),
]
EMBEDDER = HashingEmbedder(64)


@dataclass
class Bucket:
    """The two calls of S3 that are used, with S3's own answers."""

    objects: dict[str, tuple[bytes, dict[str, str]]]
    reads: int = 0
    damage: bool = False
    unreachable: bool = False

    def put_object(
        self, *, Bucket: str, Key: str, Body: Any, IfNoneMatch: str, Metadata: dict[str, str]
    ) -> None:
        self._reach()
        assert (Bucket, IfNoneMatch) == ("b", "*")
        if Key in self.objects:
            raise refused("PreconditionFailed", 412)
        self.objects[Key] = (Body.read(), Metadata)

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        self._reach()
        self.reads += 1
        if Bucket != "b" or Key not in self.objects:
            raise refused("NoSuchKey", 404)
        data, metadata = self.objects[Key]
        return {
            "Body": Stream(data[:-1] if self.damage else data),
            "Metadata": metadata,
            "ContentLength": len(data),
        }

    def _reach(self) -> None:
        if self.unreachable:
            raise EndpointConnectionError(endpoint_url="s3")


class Stream(io.BytesIO):
    def iter_chunks(self, size: int):
        while chunk := self.read(size):
            yield chunk


def refused(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "S3")


@pytest.fixture
def bucket():
    return Bucket({})


@pytest.fixture(params=["memory", "sqlite directory", "sqlite s3"])
def index(request, tmp_path, bucket):
    if request.param == "memory":
        yield MemoryKnowledge()
        return
    files = (
        DirectoryFiles(tmp_path) if "directory" in request.param else S3Files(bucket, "b", tmp_path / "cache")
    )
    with SqliteKnowledge(files) as opened:
        yield opened


@pytest.fixture
def filled(index):
    index.put_version("a", "help", 1, DOCUMENTS, EMBEDDER)
    return index


def vector(text: str) -> list[float]:
    return EMBEDDER.embed([text])[0]


def found(index, query, *, at=("a", "help", 1), by_vector=None, limit=5) -> list[str]:
    account, collection, version = at
    return [
        hit.document_id
        for hit in index.search(account, {collection: version}, query, by_vector, limit).pieces
    ]


# Finding


@pytest.mark.covers("F-151")
@pytest.mark.parametrize(
    ("query", "document_id"),
    [
        ("退货要几天", "returns-zh"),
        ("电子发票", "invoice-zh"),
        ("returned goods delivery", "returns-en"),
        ("S55ES0000134", "device-en"),
        ("what is s55es0000134?", "device-en"),
        ("FRA-01", "shipping-en"),
        ("包裹 FRA-01 到了吗", "shipping-en"),
        ("MÜNICH", "hours-en"),
        ("积分过期", "points-zh"),
    ],
)
@pytest.mark.parametrize("with_vector", [False, True])
def test_the_right_document_comes_first(filled, query, document_id, with_vector):
    by_vector = vector(query) if with_vector else None
    assert found(filled, query, by_vector=by_vector)[0] == document_id


@pytest.mark.covers("F-140")
def test_a_hit_names_its_piece_source_version_and_scope(filled):
    hit = filled.search("a", {"help": 1}, "退货", None, 1).pieces[0]
    assert (hit.ref, hit.collection, hit.version) == ("help/returns-zh/0", "help", 1)
    assert (hit.document_id, hit.piece, hit.title, hit.source) == ("returns-zh", 0, "退货政策", "r.md")
    assert hit.text == DOCUMENTS[0].text
    assert hit.score == 1.0


@pytest.mark.covers("F-152")
def test_vectors_find_what_no_word_does(filled):
    text = "Opening hours\nThe shop in Munich is open from nine to six."
    assert found(filled, "", by_vector=vector(text))[0] == "hours-en"
    assert found(filled, "") == []
    assert found(filled, "zzz", by_vector=vector(text))[0] == "hours-en"


@pytest.mark.covers("F-143")
def test_the_limit_holds_and_the_best_come_first(filled):
    everything = filled.search("a", {"help": 1}, "returned 退货 发票 the", vector("退货"), 100).pieces
    assert len(everything) == len(DOCUMENTS)
    assert [hit.score for hit in everything] == sorted((hit.score for hit in everything), reverse=True)
    for limit in (1, 3):
        assert (
            filled.search("a", {"help": 1}, "returned 退货 发票 the", vector("退货"), limit).pieces
            == everything[:limit]
        )
    assert filled.search("a", {"help": 1}, "退货", vector("退货"), 0).pieces == []
    assert filled.search("a", {"help": 1}, "退货", vector("退货"), -1).pieces == []


def test_the_same_question_gets_the_same_answer(filled):
    first = filled.search("a", {"help": 1}, "退货 returned", vector("退货"), 5).pieces
    assert all(
        filled.search("a", {"help": 1}, "退货 returned", vector("退货"), 5).pieces == first for _ in range(3)
    )


def test_all_indexes_score_alike(tmp_path, bucket):
    with (
        SqliteKnowledge(DirectoryFiles(tmp_path / "d")) as directory,
        SqliteKnowledge(S3Files(bucket, "b", tmp_path / "s")) as s3,
    ):
        adapters = [MemoryKnowledge(), directory, s3]
        for adapter in adapters:
            adapter.put_version("a", "help", 1, DOCUMENTS, EMBEDDER)
        for query in ("退货要几天", "the days of delivery", "FRA-01 积分"):
            for by_vector in (None, vector(query)):
                memory, *others = (
                    adapter.search("a", {"help": 1}, query, by_vector, 9).pieces for adapter in adapters
                )
                for other in others:
                    assert [hit.ref for hit in other] == [hit.ref for hit in memory]
                    assert [hit.score for hit in other] == pytest.approx(
                        [hit.score for hit in memory], abs=1e-5
                    )


def test_a_long_clause_gives_its_best_piece_alone(index):
    long = "## Fees\n\n" + "\n\n".join(
        f"Rule {n}: the fee applies. " + "More about it. " * 30 for n in range(12)
    )
    summary = index.put_version("a", "help", 1, [Document(document_id="fees", title="Fees", text=long)], None)
    assert summary.pieces > 1
    hits = index.search("a", {"help": 1}, "fee rule 11", None, 5).pieces
    assert len(hits) == 1
    assert "Rule 11" in hits[0].text


def test_a_collection_larger_than_the_depth_is_searched_whole(index):
    documents = [
        Document(document_id=f"d{n:03}", title="Note", text=f"common code X{n:03}") for n in range(DEPTH + 50)
    ]
    index.put_version("a", "help", 1, documents, EMBEDDER)
    assert found(index, "common x149", by_vector=vector("common x149"))[0] == "d149"


# Scope and versions


@pytest.mark.covers("F-144", "F-155")
@pytest.mark.invariant("I6")
def test_accounts_collections_and_versions_never_mix(index):
    scopes = [("a", "help", 1), ("a", "help", 2), ("a", "public", 1), ("b", "help", 1), ("A", "help", 1)]
    for number, scope in enumerate(scopes):
        canary = Document(document_id="canary", title="Secret", text=f"The secret canary{number} sings.")
        index.put_version(*scope, [canary, *DOCUMENTS[:number]], EMBEDDER)
    for number, scope in enumerate(scopes):
        account, collection, version = scope
        query, by_vector = "secret canary0 canary1 canary2 canary3 canary4", vector("secret canary")
        hits = index.search(account, {collection: version}, query, by_vector, 50).pieces
        texts = " ".join(hit.text for hit in hits)
        assert [n for n in range(len(scopes)) if f"canary{n}" in texts] == [number]
        assert all((hit.collection, hit.version) == scope[1:] for hit in hits)


@pytest.mark.covers("F-159")
@pytest.mark.parametrize("scope", [("a", "help", 2), ("a", "help", 0), ("a", "other", 1), ("b", "help", 1)])
def test_a_missing_version_is_unavailable_and_no_other_stands_in(filled, scope):
    account, collection, version = scope
    assert filled.search(account, {collection: version}, "退货", None, 5) == ([], (collection,))
    with pytest.raises(KnowledgeUnavailableError):
        filled.summary(*scope)


@pytest.mark.covers("F-159")
def test_a_collection_that_cannot_be_read_leaves_the_others_and_a_line_in_the_log(filled, caplog):
    with caplog.at_level(logging.WARNING):
        pieces, unreadable = filled.search("a", {"gone": 1, "help": 1, "old": 7}, "退货", None, 5)
    assert unreadable == ("gone", "old")
    assert [(r.__dict__["collection"], r.__dict__["version"]) for r in caplog.records] == [
        ("gone", 1),
        ("old", 7),
    ]
    assert all(r.__dict__["reason"] for r in caplog.records)
    assert pieces == filled.search("a", {"help": 1}, "退货", None, 5).pieces != []


@pytest.mark.covers("F-119", "F-131")
def test_several_collections_are_ranked_as_one_and_not_each_by_its_own_best(index):
    near = Document(document_id="near", title="退货", text="七天内可以退货，退货运费由买家承担。")
    far = [
        Document(document_id=f"far{n}", title="发票", text=f"电子发票第{n}号，买家承担。") for n in range(3)
    ]
    index.put_version("a", "near", 2, [near, *far[:1]], EMBEDDER)
    index.put_version("a", "far", 1, far, EMBEDDER)
    question = "退货运费谁承担"
    alone = index.search("a", {"far": 1}, question, vector(question), 5).pieces
    assert alone[0].score == pytest.approx(1.0)  # the best of a bad lot
    together = index.search("a", {"far": 1, "near": 2}, question, vector(question), 5).pieces
    assert (together[0].collection, together[0].version, together[0].document_id) == ("near", 2, "near")
    assert all(piece.score < 0.7 for piece in together if piece.collection == "far")
    assert [piece.ref for piece in together] == [
        piece.ref for piece in index.search("a", {"near": 2, "far": 1}, question, vector(question), 5).pieces
    ]


@pytest.mark.invariant("I6")
@pytest.mark.parametrize(
    "scope", [("../a", "help", 1), ("a", "../a/help", 1), ("a", "help/1", 1), ("a", "help", -1)]
)
def test_a_name_that_leads_elsewhere_is_refused(filled, scope):
    account, collection, version = scope
    with pytest.raises(BrokenInvariantError):
        filled.search(account, {collection: version}, "退货", None, 5)
    with pytest.raises(BrokenInvariantError):
        filled.put_version(*scope, DOCUMENTS, None)


def test_a_version_never_changes(filled):
    same = filled.put_version("a", "help", 1, DOCUMENTS[::-1], EMBEDDER)
    assert same == filled.summary("a", "help", 1)
    assert (same.documents, same.pieces, same.model, same.dimensions) == (7, 7, "hashing-64", 64)
    for documents, embedder in (
        (DOCUMENTS[:-1], EMBEDDER),
        (DOCUMENTS, None),
        (DOCUMENTS, HashingEmbedder(32)),
    ):
        with pytest.raises(RefusedError) as caught:
            filled.put_version("a", "help", 1, documents, embedder)
        assert caught.value.code == "knowledge_version_exists"
    assert found(filled, "积分过期")[0] == "points-zh"


def test_documents_outside_the_limits_publish_nothing(index):
    with pytest.raises(RefusedError):
        index.put_version("a", "help", 1, [*DOCUMENTS, Document(document_id="e", title="", text=" ")], None)
    with pytest.raises(KnowledgeUnavailableError):
        index.summary("a", "help", 1)


def test_an_embedder_that_fails_publishes_nothing(index):
    class Failing:
        model = "m"

        def embed(self, texts):
            raise ModelUnavailableError("timeout", f"{len(texts)} texts")

    with pytest.raises(ModelUnavailableError):
        index.put_version("a", "help", 1, DOCUMENTS, Failing())
    with pytest.raises(KnowledgeUnavailableError):
        index.summary("a", "help", 1)


@pytest.mark.covers("F-150")
def test_a_draft_is_never_found(index):
    draft = Document(document_id="draft", title="Draft", text="Unconfirmed canary.", enabled=False)
    assert index.put_version("a", "help", 1, [draft, *DOCUMENTS], None).documents == len(DOCUMENTS)
    assert found(index, "Unconfirmed canary") == []


def test_an_empty_version_answers_nothing(index):
    index.put_version("a", "help", 1, [], EMBEDDER)
    assert found(index, "退货", by_vector=vector("退货")) == []


# Hostile and odd questions


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""退货""',
        "NEAR(",
        "NEAR(a b, 5)",
        "title: ^returns*",
        "a AND OR NOT",
        "'; DROP TABLE pieces; --",
        "\U0001f600\U0001f4a9",
        "\x00\x01",
        "half \ud83d",
        "-._/",
        "退" * 2700,
        " ".join(f"word{n}" for n in range(1000)),
        "a" * 8192,
        "%_*?[",
        " \n\t",
    ],
)
def test_no_question_breaks_the_index(filled, query):
    for by_vector in (None, vector(query)):
        hits = filled.search("a", {"help": 1}, query, by_vector, 5).pieces
        assert len(hits) <= 5
    assert found(filled, "退货要几天")[0] == "returns-zh"


@pytest.mark.parametrize("by_vector", [[1.0] * 63, [], [float("nan")] * 64, [float("inf")] * 64])
def test_a_vector_that_does_not_fit_leaves_the_words(filled, by_vector):
    assert found(filled, "退货要几天", by_vector=by_vector) == found(filled, "退货要几天")


def test_a_version_without_vectors_is_searched_by_words(index):
    summary = index.put_version("a", "help", 1, DOCUMENTS, None)
    assert (summary.model, summary.dimensions) == ("", 0)
    assert found(index, "退货要几天", by_vector=vector("退货")) == found(index, "退货要几天") != []


# What only files can suffer


@pytest.fixture
def directory(tmp_path):
    with SqliteKnowledge(DirectoryFiles(tmp_path)) as index:
        index.put_version("a", "help", 1, DOCUMENTS, EMBEDDER)
        index.put_version("b", "help", 1, DOCUMENTS[:2], None)
    return tmp_path


def file_of(root: Path) -> Path:
    return root / "a" / "help" / "1.sqlite"


def spoil_nothing_left(path: Path) -> None:
    path.write_bytes(b"")


def spoil_not_a_database(path: Path) -> None:
    path.write_bytes(b"not a database" * 1000)


def spoil_cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:8192])


def spoil_another_format(path: Path) -> None:
    edit(path, "PRAGMA user_version = 99")


def spoil_a_piece_is_gone(path: Path) -> None:
    edit(path, "DELETE FROM pieces WHERE id = 3")


def spoil_the_vectors_are_gone(path: Path) -> None:
    edit(path, "DELETE FROM vectors")


def spoil_half_the_vectors_are_gone(path: Path) -> None:
    edit(path, "UPDATE vectors SET data = substr(data, 1, 1000)")


def spoil_another_accounts_file(path: Path) -> None:
    shutil.copyfile(path.parents[2] / "b" / "help" / "1.sqlite", path)


def edit(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_nothing_left,
        spoil_not_a_database,
        spoil_cut_short,
        spoil_another_format,
        spoil_a_piece_is_gone,
        spoil_the_vectors_are_gone,
        spoil_half_the_vectors_are_gone,
        spoil_another_accounts_file,
    ],
)
def test_a_damaged_file_is_unavailable_and_is_not_replaced(directory, spoil):
    spoil(file_of(directory))
    damaged = file_of(directory).read_bytes()
    with SqliteKnowledge(DirectoryFiles(directory)) as index:
        assert index.search("a", {"help": 1}, "退货", vector("退货"), 5) == ([], ("help",))
        with pytest.raises(KnowledgeUnavailableError):
            index.put_version("a", "help", 1, DOCUMENTS, EMBEDDER)
        assert found(index, "退货", at=("b", "help", 1)) == ["returns-zh"]
    assert file_of(directory).read_bytes() == damaged


def test_searching_leaves_the_file_as_it_was(directory):
    before = file_of(directory).read_bytes()
    file_of(directory).chmod(0o400)
    with SqliteKnowledge(DirectoryFiles(directory)) as index:
        found(index, "退货", by_vector=vector("退货"))
    assert file_of(directory).read_bytes() == before
    assert sorted(path.name for path in file_of(directory).parent.iterdir()) == ["1.sqlite"]


def test_a_collection_does_not_lose_on_its_own_topic(index):
    """Everybody in it uses its words, and another one says them once in passing."""
    index.put_version(
        "a",
        "warranty",
        1,
        [
            Document(document_id=f"w{n}", title=f"保修{part}", text=f"{part}的保修说明，保修期十二个月。")
            for n, part in enumerate(("屏幕", "电池", "主板", "外壳"))
        ],
        None,
    )
    others = [
        Document(document_id=f"p{n}", title="商品", text=f"第{n}款手机的参数和颜色。") for n in range(6)
    ]
    passing = Document(document_id="p6", title="商品", text="耳机的参数、颜色和重量，不含保修。")
    index.put_version("a", "products", 1, [*others, passing], None)
    found_ = index.search("a", {"products": 1, "warranty": 1}, "保修", None, 5).pieces
    assert [piece.collection for piece in found_] == ["warranty"] * 4 + ["products"]


def test_equals_are_found_once_and_in_the_collection_named_first(index):
    index.put_version("a", "copy", 1, DOCUMENTS, EMBEDDER)
    index.put_version("a", "own", 1, DOCUMENTS, EMBEDDER)
    pieces = index.search("a", {"own": 1, "copy": 1}, "退货要几天", vector("退货要几天"), 50).pieces
    assert {piece.collection for piece in pieces} == {"own"}
    assert len(pieces) == len(DOCUMENTS)


def test_an_odd_vector_is_logged_as_degraded(directory, caplog):
    with SqliteKnowledge(DirectoryFiles(directory)) as index, caplog.at_level(logging.WARNING):
        found(index, "退货", by_vector=[1.0])
    assert [record.__dict__["degraded"] for record in caplog.records] == ["vector"]
    assert "退货" not in caplog.text


def test_many_versions_may_be_open_in_turn(tmp_path):
    with SqliteKnowledge(DirectoryFiles(tmp_path)) as index:
        for version in range(40):
            index.put_version(
                "a", "help", version, [Document(document_id=f"d{version}", title="", text="x")], None
            )
        for version in range(40):
            assert found(index, "x", at=("a", "help", version)) == [f"d{version}"]


def test_two_publishers_of_one_version_agree_on_the_first(tmp_path):
    """The second one builds while the first one publishes: its own file must not win."""

    class Late(DirectoryFiles):
        def publish(self, account, collection, version, built):
            with SqliteKnowledge(DirectoryFiles(tmp_path)) as first:
                first.put_version(account, collection, version, DOCUMENTS[:2], None)
            return super().publish(account, collection, version, built)

    with SqliteKnowledge(Late(tmp_path)) as second:
        with pytest.raises(RefusedError, match="knowledge_version_exists"):
            second.put_version("a", "help", 1, DOCUMENTS, None)
        assert second.summary("a", "help", 1).documents == 2


# S3


def test_an_object_is_fetched_once_and_checked(tmp_path, bucket):
    with SqliteKnowledge(S3Files(bucket, "b", tmp_path / "writer")) as writer:
        writer.put_version("a", "help", 1, DOCUMENTS, None)
    assert list(bucket.objects) == ["knowledge/a/help/1.sqlite"]
    bucket.reads, bucket.damage = 0, True
    with SqliteKnowledge(S3Files(bucket, "b", tmp_path / "reader")) as reader:
        with pytest.raises(KnowledgeUnavailableError, match="damaged"):
            reader.summary("a", "help", 1)
        bucket.damage = False
        assert found(reader, "退货")[0] == "returns-zh"
    with SqliteKnowledge(S3Files(bucket, "b", tmp_path / "reader")) as restarted:
        assert found(restarted, "退货")[0] == "returns-zh"
    assert bucket.reads == 2
    assert [path.name for path in (tmp_path / "reader" / "a" / "help").iterdir()] == ["1.sqlite"]


def test_a_cache_that_is_full_lets_the_oldest_versions_go(tmp_path, bucket):
    with SqliteKnowledge(S3Files(bucket, "b", tmp_path / "writer")) as writer:
        for version in (1, 2, 3):
            writer.put_version("a", "help", version, DOCUMENTS, None)
    size = len(bucket.objects["knowledge/a/help/1.sqlite"][0])
    files = S3Files(bucket, "b", tmp_path / "cache", most_cached_bytes=2 * size + 100)
    for age, version in ((3, 1), (2, 2)):
        past = time.time() - age
        os.utime(files.path("a", "help", version), (past, past))
    files.path("a", "help", 3)
    assert sorted(path.name for path in (tmp_path / "cache" / "a" / "help").iterdir()) == [
        "2.sqlite",
        "3.sqlite",
    ]
    assert files.path("a", "help", 1).exists()


def test_a_bucket_that_cannot_be_reached_is_unavailable(tmp_path, bucket):
    bucket.unreachable = True
    files = S3Files(bucket, "b", tmp_path)
    with pytest.raises(KnowledgeUnavailableError, match="EndpointConnectionError"):
        files.path("a", "help", 1)
    built = tmp_path / "built"
    built.write_bytes(b"x")
    with pytest.raises(TransientError, match="s3:PutObject"):
        files.publish("a", "help", 1, built)


def test_the_second_writer_of_an_object_is_told(tmp_path, bucket):
    files = S3Files(bucket, "b", tmp_path)
    built = tmp_path / "built"
    built.write_bytes(b"first")
    assert files.publish("a", "help", 1, built) is True
    built.write_bytes(b"second")
    assert files.publish("a", "help", 1, built) is False
    assert files.path("a", "help", 1).read_bytes() == b"first"


def test_a_file_that_turns_out_damaged_while_it_is_quoted_leaves_the_others():
    rows = rows_of(DOCUMENTS)

    def row(collection: str, number: int):
        if collection == "help" and number == 1:
            raise KnowledgeUnavailableError("a page of it is damaged")
        return rows[number]

    pieces, unreadable = search_together(
        {"help": 1, "more": 1}, lambda *_: LookedUp(7, {"a": {0: 3.0, 1: 2.0, 2: 1.0}}, {}), row, 5
    )
    assert unreadable == ("help",)
    assert [piece.collection for piece in pieces] == ["more"] * 3
