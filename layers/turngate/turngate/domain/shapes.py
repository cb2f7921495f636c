"""The shapes that states, functions and adapters share. Others extend them by version, never by a second model."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, dataclass_transform

import msgspec

SCHEMA_VERSION = 1
"""Written into every TurnRef. A release reads N and N−1 and refuses newer."""

Ident = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@|-]{0,127}\Z")]
"""An id that may stand in a key: `#` separates key parts, so it is banned (I6).
Patterns end in `\\Z`: a line end may follow a `$`."""

Language = Literal["zh-CN", "en"]
Texts = dict[Language, str]
"""One user-visible text per language."""

MessageType = Literal["user_chat", "rule", "form", "other"]
"""F-049."""


class _ByName(msgspec.StructMeta):
    """Fields are given by name, in subclasses too: of the options below, msgspec does not hand this one down."""

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        /,
        **options: Any,  # noqa: ANN401 - whatever StructMeta takes
    ) -> _ByName:
        return super().__new__(mcs, name, bases, namespace, **{"kw_only": True, **options})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Frozen(msgspec.Struct, metaclass=_ByName, frozen=True):
    """A value: never changed after it is made. Fields it does not know are passed over when a document is read, so that
    a release can read what the next one wrote, in a turn under way and after a rollback.

    Making one checks nothing: what comes from outside is read by `domain.wire.read`."""


class TenantContext(Frozen):
    """Who speaks, as the authorizer established it; never from a payload (F-643, F-645)."""

    account: Ident
    principal: Ident
    customer: Ident | None = None
    roles: tuple[Literal["customer", "agent", "operator"], ...] = ("customer",)
    client_type: str = "web"
    client_session: str = ""
    capabilities: tuple[Ident, ...] = ()
    """What the client declared that it can do (`ui.show_guide`, F-088)."""

    def known(self) -> dict[str, Any]:
        """As a document, without what is not known: tokens and rows never hold a null."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in document.items() if value is not None}


class TurnRef(Frozen):
    """What every state knows of its turn. Times are epoch milliseconds."""

    account: Ident
    conversation: Ident
    run: Ident
    execution: str
    epoch: int
    seq: int
    config_version: int
    knowledge_pins: dict[str, int] = {}
    deadline: int
    schema_version: Annotated[int, msgspec.Meta(ge=1, le=SCHEMA_VERSION)] = SCHEMA_VERSION


class AllowedRoute(Frozen, tag_field="kind", tag="KB"):
    """Exactly one authorised resource for one sub-question (F-113): documents; nothing else is connected yet.
    `collections`: the one bound to the intent, or the public fallback collections. `fallback_collections`: public ones
    that may be searched too when the bound one holds nothing near the question (R-14)."""

    kind: ClassVar[Literal["KB"]] = "KB"
    intent_id: str
    resource_name: str
    collections: tuple[str, ...] = ()
    fallback_collections: tuple[str, ...] = ()
    fallback: bool = False


class Option(Frozen):
    """Something the customer was shown to choose from. `also`: other names of it, in the other language for one."""

    id: str
    name: str
    also: tuple[str, ...] = ()


class Clarification(Frozen, tag_field="kind", tag="CLARIFICATION"):
    """A question back to the customer (R-10). All reasons but `incomplete` wait for an answer: the commit of the reply
    stores them as a pending item, which adds `resume_token` and `expires_at` (domain/pending.py).

    `intent_id` and `given` are what is known already; a chosen option fills the one field of `missing_fields`."""

    kind: ClassVar[Literal["CLARIFICATION"]] = "CLARIFICATION"
    reason: Literal[
        "missing_parameter", "entity_choice", "dependency_choice", "intent_guidance", "approval", "incomplete"
    ]
    text: str
    missing_fields: tuple[str, ...] = ()
    candidates: tuple[Option, ...] = ()
    intent_id: str = ""
    given: dict[str, str] = {}


class Refusal(Frozen, tag_field="kind", tag="REFUSAL"):
    """A stated no. `reason` is one of the governance outcomes or a contract reason."""

    kind: ClassVar[Literal["REFUSAL"]] = "REFUSAL"
    reason: Literal[
        "OUT_OF_SCOPE",
        "ROUTING_ERROR",
        "not_connected",
        "login_required",
        "disabled",
        "wrong_client",
        "risk_blocked",
    ]
    text: str


class FixedAnswer(Frozen, tag_field="kind", tag="FIXED"):
    """An answer the contract itself gives: a SYSTEM action's text. Authorised, and needs no evidence."""

    kind: ClassVar[Literal["FIXED"]] = "FIXED"
    intent_id: str
    resource_name: str
    text: str


Route = AllowedRoute | Clarification | Refusal | FixedAnswer
"""`kind` tells them apart in a document; the machine's choices read it."""


class Part(Frozen):
    """One sub-question and the one thing that may be done about it. Parts are independent of each other. `given`:
    arguments that the customer chose among ours or stated, by field; verified, and never an identity (I14)."""

    part_id: str
    question: str
    route: Route
    given: dict[str, str] = {}


class Evidence(Frozen):
    """A piece of a document as it was retrieved. `ref` is unique within the run (`p1.E2`)."""

    ref: str
    collection: str
    version: int
    document_id: str
    piece: int
    title: str
    text: str
    score: float
    source: str = ""


class Fact(Frozen):
    """The only thing that numbers, states and names in a reply may come from."""

    fact_id: str
    kind: str
    fields: dict[str, Any]
    source_ref: str
    data_version: str = ""
    observed_at: int | None = None


class PartResult(Frozen):
    """What is known about a part before anything is phrased."""

    part_id: str
    status: Literal["found", "nothing_found", "unavailable", "stated"]
    delivery: Literal["compose", "verbatim"] = "compose"
    text: str = ""
    outcome: Literal["answer", "ask_for_clarification", "decline"] = "answer"
    evidence_refs: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    pending: str | None = None
    call_refs: tuple[str, ...] = ()


class Source(Frozen):
    """A document named under a reply."""

    ref: str
    collection: str
    version: int
    document_id: str
    title: str
    source: str = ""


class Usage(Frozen):
    """What the model cost. `simulated` is true when the offline demo model spoke."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    simulated: bool = False

    def plus(self, other: Usage) -> Usage:
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            simulated=self.simulated or other.simulated,
        )


Outcome = Literal["answer", "ask_for_clarification", "decline", "tool_facts", "handoff"]


class Draft(Frozen):
    """A reply that is ready to be committed."""

    content: str
    outcome: Outcome
    sources: tuple[Source, ...] = ()
    facts: tuple[Fact, ...] = ()
    response_source: Literal["llm_generated", "fixed", "evidence", "stated_failure"] = "llm_generated"


class RunEvent(Frozen):
    """One entry of a run's log (F-354). `data` holds ids, numbers and codes, never message text (F-355)."""

    part: str = "-"
    step: int
    kind: str
    at: int
    data: dict[str, Any] = {}


class InputMessage(Frozen):
    """One customer message that this turn answers."""

    message_seq: int
    text: str
    message_type: MessageType = "user_chat"


class HistoryMessage(Frozen):
    role: Literal["customer", "assistant", "agent"]
    text: str


class TurnInput(Frozen):
    """Everything the customer said since the last answer, joined (INVARIANTS, Joined input)."""

    messages: tuple[InputMessage, ...]
    language: Language
    truncated: bool = False

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)


class Candidate(Frozen):
    """F-074."""

    id: str
    score: float


class SubQuestion(Frozen):
    text: str
    candidates: tuple[Candidate, ...] = ()


class ProposedReply(Frozen):
    """What the model takes a message for: the answer to a question of ours that is open. Govern verifies it."""

    resume_token: str
    option_id: str = ""
    value: str = ""


class Understanding(Frozen):
    """What the message looks like; grants nothing (F-082). `status` ERROR: the model gave nothing usable.

    `discarded` and `drift` tell what was not believed, for the route trace (`unknown_intent:<id>`, `number_lost`).
    `offered`: ids on the shortlist that the model chose from; empty when it saw the whole catalogue."""

    status: Literal["OK", "ERROR"]
    rewritten: str = ""
    sub_questions: tuple[SubQuestion, ...] = ()
    reply: ProposedReply | None = None
    error: str = ""
    discarded: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
