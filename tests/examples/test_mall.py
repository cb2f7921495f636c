"""The example tenants hold together: what their files promise each other is there, in both languages."""

import json
import re
from collections import Counter
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DOCUMENTS = EXAMPLES / "mall" / "documents"
BANK_DOCUMENTS = ROOT.parent / "shared" / "data" / "tau2_banking" / "documents"

PUBLIC_COLLECTIONS = {"product-kb", "shopping-policy-kb", "after-sales-kb", "support-kb"}
COLLECTIONS = PUBLIC_COLLECTIONS | {"device-guide-kb", "membership-kb"}
PUBLIC_TOOLS = {"searchProducts", "getProductAvailability", "getSparePartPrice"}
PRIVATE_TOOLS = {"getCouponEligibility", "getOrder", "getLogistics", "getWarrantyStatus", "getRepairProgress"}
NAMED_BY_THE_SEED = {
    "ORDER_QUERY": ("MCP", "getOrder"),
    "LOGISTICS_QUERY": ("MCP", "getLogistics"),
    "WARRANTY_STATUS": ("MCP", "getWarrantyStatus"),
    "RETURN_POLICY": ("KB", "shopping-policy-kb"),
    "CONNECTION_NETWORK": ("KB", "device-guide-kb"),
    "TROUBLESHOOTING": ("KB", "support-kb"),
    "USAGE_GUIDE": ("KB", "device-guide-kb"),
    "ORDER_CHANGE": ("SYSTEM", "order_change_entry"),
}
FIELDS = [
    "document_id",
    "title",
    "topic",
    "language",
    "country",
    "version",
    "source",
    "business_owner",
    "confirmed_at",
]
SHARED_BY_TWINS = ("topic", "country", "version", "confirmed_at")
# Sentences the demo and the seeds test with: an example that repeats one would only show that text equals itself.
TEST_SENTENCES = [
    "退货需要几天?",
    "How long do refunds take?",
    "第二个",
    "就这个",
    "到了没有",
    "查一下我的订单，再告诉我怎么退货",
    "查一下我的订单",
    "怎么退货",
    "订单到哪了",
    "搜索不到",
    "配对失败",
    "单耳无声",
    "频繁重启",
    "怎么设置",
    "怎么开启",
]
CHINESE = re.compile(r"[\u4e00-\u9fff]")

Config = dict[str, Any]


class Document:
    """One Markdown file: front matter fields and the clauses under its `##` headings, in order."""

    def __init__(self, path: Path) -> None:
        """Read `path`; the front matter is `key: value` lines between two lines of `---`."""
        opening, front, self.body = path.read_text(encoding="utf-8").split("---\n", 2)
        assert opening == "", f"{path} does not start with its front matter"
        self.path = path
        self.fields = dict(line.split(": ", 1) for line in front.splitlines())
        before, *clauses = re.split(r"^## ", self.body, flags=re.MULTILINE)
        assert not before.strip(), f"{path} has text before its first clause"
        self.clauses = [clause.strip().partition("\n") for clause in clauses]


ALL_DOCUMENTS = [Document(path) for path in sorted(DOCUMENTS.glob("*/*.md"))]
BY_ID = {document.fields["document_id"]: document for document in ALL_DOCUMENTS}


def load(tenant: str) -> Config:
    config: Config = json.loads((EXAMPLES / tenant / "config.json").read_text(encoding="utf-8"))
    return config


def normalised(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def localized(value: Any) -> list[dict[str, str]]:
    """All objects below `value` that are texts per language."""
    if isinstance(value, list):
        return list(chain.from_iterable(map(localized, value)))
    if not isinstance(value, dict):
        return []
    if "zh-CN" in value or "en" in value:
        return [value]
    return list(chain.from_iterable(map(localized, value.values())))


def figures(body: str) -> set[str]:
    """The numbers a text states, but for months, clock zeros and midnight: each language spells those its own way."""
    plain = re.sub(r"\d+ 月|24 点|:00\b", " ", body)
    return set(re.findall(r"\d+(?:\.\d+)?", plain))


@pytest.fixture(params=["mall", "bank"])
def tenant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_mall_has_six_collections_and_the_documents_promised() -> None:
    assert {document.path.parent.name for document in ALL_DOCUMENTS} == COLLECTIONS
    languages = Counter(document.fields["language"] for document in ALL_DOCUMENTS)
    assert languages["zh-CN"] >= 44
    assert languages["en"] >= 24
    assert set(languages) == {"zh-CN", "en"}


def test_every_document_is_described_and_named_after_its_id() -> None:
    assert len(BY_ID) == len(ALL_DOCUMENTS), "two documents share an id"
    for document in ALL_DOCUMENTS:
        assert list(document.fields) == FIELDS, document.path
        assert all(value.strip() for value in document.fields.values()), document.path
        assert document.path.stem == document.fields["document_id"]
        date.fromisoformat(document.fields["confirmed_at"])
        assert document.fields["country"] in {"global", "CN"}


def test_every_document_is_a_few_whole_clauses_in_its_own_language() -> None:
    for document in ALL_DOCUMENTS:
        assert 2 <= len(document.clauses) <= 6, document.path
        assert all(heading.strip() and text.strip() for heading, _, text in document.clauses), document.path
        chinese = document.fields["language"] == "zh-CN"
        assert chinese != document.path.stem.endswith("-en"), document.path
        assert bool(CHINESE.search(document.body)) == chinese, document.path
        assert bool(CHINESE.search(document.fields["title"])) == chinese, document.path


def test_both_languages_say_the_same_numbers() -> None:
    for document in ALL_DOCUMENTS:
        if document.fields["language"] == "en":
            continue
        twin = BY_ID[document.fields["document_id"] + "-en"]
        assert twin.path.parent == document.path.parent
        for field in SHARED_BY_TWINS:
            assert twin.fields[field] == document.fields[field], (document.path, field)
        assert len(twin.clauses) == len(document.clauses), document.path
        assert figures(twin.body) == figures(document.body), document.path


def test_refunds_take_the_same_time_wherever_they_are_mentioned() -> None:
    saying_so = {d.path.stem for d in ALL_DOCUMENTS if re.search(r"3–7 (个工作日|working days)", d.body)}
    assert {"refund-timing", "refund-timing-en", "no-reason-return", "no-reason-return-en"} <= saying_so
    for document in ALL_DOCUMENTS:
        for match in re.finditer(r"\d+–\d+ (?:个工作日|working days)", document.body):
            assert match[0].startswith("3–7 "), (document.path, match[0])


@pytest.mark.covers("F-070", "F-071", "F-111")
def test_the_mall_has_twenty_four_leaf_intents_by_kind_of_resource() -> None:
    config = load("mall")
    assert len(config["intents"]) == 24
    assert Counter(entry["kind"] for entry in config["contract"]) == {"KB": 15, "MCP": 8, "SYSTEM": 1}
    assert {i["domain"] for i in config["intents"]} == {
        "product",
        "order",
        "logistics",
        "after-sales",
        "device",
    }


@pytest.mark.covers("F-072")
def test_intents_named_by_the_seed_keep_their_names_and_the_others_are_marked_ours() -> None:
    config = load("mall")
    sources = {intent["id"]: intent["source"] for intent in config["intents"]}
    assert {name for name, source in sources.items() if source == "seed"} == set(NAMED_BY_THE_SEED)
    assert set(sources.values()) == {"seed", "ours"}
    resources = {e["intent_id"]: (e["kind"], e["resource_name"]) for e in config["contract"]}
    assert {name: resources[name] for name in NAMED_BY_THE_SEED} == NAMED_BY_THE_SEED


def test_every_intent_has_exactly_one_contract_entry(tenant: str) -> None:
    config = load(tenant)
    intents = [intent["id"] for intent in config["intents"]]
    assert len(set(intents)) == len(intents)
    assert sorted(entry["intent_id"] for entry in config["contract"]) == sorted(intents)
    assert all(item["enabled"] is True for item in config["intents"] + config["contract"])


@pytest.mark.covers("F-112")
def test_every_contract_resource_exists() -> None:
    config = load("mall")
    known = {
        "KB": {document.path.parent.name for document in ALL_DOCUMENTS},
        "MCP": PUBLIC_TOOLS | PRIVATE_TOOLS,
        "SYSTEM": set(config["system_replies"]),
    }
    for entry in config["contract"]:
        assert entry["resource_name"] in known[entry["kind"]], entry
    used = {e["resource_name"] for e in config["contract"]}
    assert used == COLLECTIONS | PUBLIC_TOOLS | PRIVATE_TOOLS | set(config["system_replies"])


@pytest.mark.covers("F-120", "F-121")
def test_only_what_belongs_to_a_person_needs_a_login() -> None:
    entries = load("mall")["contract"]
    assert {e["resource_name"] for e in entries if e["login_required"]} == PRIVATE_TOOLS
    tools = [e["resource_name"] for e in entries if e["kind"] == "MCP"]
    assert sorted(tools) == sorted(PUBLIC_TOOLS | PRIVATE_TOOLS)


@pytest.mark.covers("F-119", "F-123")
def test_the_fallback_is_the_four_public_collections_and_no_tool() -> None:
    config = load("mall")
    fallback = config["routing"]["fallback_collections"]
    assert len(fallback) == 4
    assert set(fallback) == PUBLIC_COLLECTIONS
    assert not set(fallback) & {e["resource_name"] for e in config["contract"] if e["kind"] != "KB"}


@pytest.mark.covers("F-122")
def test_changing_an_order_calls_no_tool_and_points_to_the_order_page() -> None:
    config = load("mall")
    (entry,) = [e for e in config["contract"] if e["intent_id"] == "ORDER_CHANGE"]
    assert entry["kind"] == "SYSTEM"
    reply = config["system_replies"][entry["resource_name"]]
    assert "我的订单" in reply["zh-CN"]
    assert "My orders" in reply["en"]


def test_no_example_is_shared_by_two_intents_or_taken_from_a_test(tenant: str) -> None:
    config = load(tenant)
    seen: dict[str, str] = {}
    for intent in config["intents"]:
        for example in intent["examples"]:
            other = seen.setdefault(normalised(example), intent["id"])
            assert other == intent["id"], (example, other, intent["id"])
        assert len(set(map(normalised, intent["examples"]))) == len(intent["examples"]), intent["id"]
    questions = json.loads((EXAMPLES / "bank" / "questions.json").read_text(encoding="utf-8"))["questions"]
    tested = TEST_SENTENCES + [question["question"] for question in questions]
    assert not set(seen) & set(map(normalised, tested))


def test_every_intent_has_examples_in_both_languages(tenant: str) -> None:
    for intent in load(tenant)["intents"]:
        chinese = [example for example in intent["examples"] if CHINESE.search(example)]
        assert 6 <= len(chinese) <= 10, intent["id"]
        assert 4 <= len(intent["examples"]) - len(chinese) <= 6, intent["id"]


def test_every_text_a_customer_can_see_exists_in_both_languages(tenant: str) -> None:
    config = load(tenant)
    assert config["account"] == tenant
    assert set(config["languages"]) == {"zh-CN", "en"}
    assert config["default_language"] in config["languages"]
    texts = localized(config)
    assert len(texts) >= 2 * len(config["intents"]) + 8
    for text in texts:
        assert set(text) == {"zh-CN", "en"}, text
        assert CHINESE.search(text["zh-CN"]), text
        assert text["en"].strip(), text
        assert not CHINESE.search(text["en"]), text


@pytest.mark.covers("F-049")
def test_there_is_a_fixed_reply_for_every_message_type_but_chat(tenant: str) -> None:
    assert set(load(tenant)["message_type_replies"]) == {"rule", "form", "other"}


@pytest.mark.covers("F-047")
def test_pre_routing_stays_small_and_every_rule_has_an_owner_and_a_reason(tenant: str) -> None:
    rules = load(tenant)["pre_routing"]["rules"]
    assert len(rules) <= 6
    assert len({rule["id"] for rule in rules}) == len(rules)
    phrases = [phrase for rule in rules for phrase in rule["phrases"]]
    assert len(phrases) <= 60
    assert len(set(map(normalised, phrases))) == len(phrases), "two rules claim one phrase"
    for rule in rules:
        assert rule["owner"]
        assert rule["reason"]
        assert rule["match"] == "full"
        assert all(len(phrase) <= 30 and phrase == phrase.lower() for phrase in rule["phrases"]), rule["id"]
        customer_known = rule["kind"] == "AUTH_CONTEXT"
        assert ("reply_guest" in rule) == customer_known
        assert all(("{customer}" in text) == customer_known for text in rule["reply"].values())
        assert "{" not in json.dumps(list(rule.get("reply_guest", {}).values()))


def test_incomplete_expressions_are_short_and_are_no_examples_or_rules(tenant: str) -> None:
    config = load(tenant)
    incomplete = set(map(normalised, config["routing"]["incomplete_expressions"]))
    assert {"查一下", "看一下"} <= incomplete
    assert len(incomplete) <= 16
    examples = chain.from_iterable(intent["examples"] for intent in config["intents"])
    phrases = chain.from_iterable(rule["phrases"] for rule in config["pre_routing"]["rules"])
    assert not incomplete & set(map(normalised, chain(examples, phrases)))


def test_the_bank_reads_one_collection_and_calls_nothing() -> None:
    config = load("bank")
    assert config["default_language"] == "en"
    assert config["routing"]["fallback_collections"] == ["bank-kb"]
    assert {(e["kind"], e["resource_name"], e["login_required"]) for e in config["contract"]} == {
        ("KB", "bank-kb", False)
    }
    assert config["system_replies"] == {}


def test_both_tenants_have_one_shape() -> None:
    mall, bank = load("mall"), load("bank")
    assert list(mall) == list(bank)
    for part in ("intents", "contract"):
        assert {tuple(item) for item in mall[part]} == {tuple(item) for item in bank[part]}


def test_the_bank_questions_are_thirty_about_thirty_documents_that_exist() -> None:
    questions = json.loads((EXAMPLES / "bank" / "questions.json").read_text(encoding="utf-8"))["questions"]
    assert [question["id"] for question in questions] == [f"q{number:02d}" for number in range(1, 31)]
    assert Counter(question["language"] for question in questions) == {"en": 24, "zh-CN": 6}
    assert all(bool(CHINESE.search(q["question"])) == (q["language"] == "zh-CN") for q in questions)
    assert len({question["document_id"] for question in questions}) == 30
    assert BANK_DOCUMENTS.is_dir(), (
        f"{BANK_DOCUMENTS} is missing: put the tau2_banking documents at ../shared/data beside this repository"
    )
    there = {path.stem for path in BANK_DOCUMENTS.glob("*.json")}
    assert [q["document_id"] for q in questions if q["document_id"] not in there] == []
