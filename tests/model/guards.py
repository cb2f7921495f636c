"""Every guard of the protocol and what becomes of its removal.

Alone: removing it yields a counterexample. Covered: the guards named beside it refuse the same writes; with those
removed it is what still holds, and with it removed too there is a counterexample. Behind: the guards named beside it
refuse whatever it would; all removed, there is a counterexample.

The page of promises asks for the second and third kind on purpose (INVARIANTS: seq, epoch and mode beside evt): they
stop a writer of HEAD that forgot to raise `evt`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.model import side_scenarios as side
from tests.model import worlds
from tests.model.explorer import Exploration, Explorer
from tests.model.switches import off
from tests.model.terms import without

if TYPE_CHECKING:
    from tests.model.stepping import Scenario


@dataclass(frozen=True)
class Removal:
    """`guard` (and `covers`, and the decisions `switched` off) removed from `world`: the model must object."""

    guard: str
    world: Scenario
    covers: tuple[str, ...] = ()
    switched: tuple[str, ...] = ()

    def __str__(self) -> str:
        beside = [*self.covers, *(f"«{name}»" for name in self.switched)]
        return self.guard + (f", covered by {', '.join(beside)}" if beside else "")

    def explore(self, *, with_guard: bool = False, max_states: int = 200_000) -> Exploration:
        """Explore without guard and covers, or, for the proof that the guard is what still held, with it."""
        removed = self.covers if with_guard else (self.guard, *self.covers)
        with off(*self.switched):
            return Explorer(self.world, mutate=without(*removed)).explore(max_states=max_states)


def _of(transaction: str, *terms: str) -> tuple[str, ...]:
    return tuple(f"{transaction}.{term}" for term in terms)


ALONE = (
    Removal("accept.head: evt =", worlds.PROTECTED),
    Removal("accept.idempotency: absent", worlds.TORN_DELIVERY),
    Removal("accept.rate: absent", side.FIRST_TOKEN),
    Removal("accept.rate: version =", side.LAST_TOKEN),
    Removal("begin.run: state =", worlds.DOUBLE_DELIVERY),
    Removal("finish.head: evt =", worlds.PROTECTED),
    Removal("human_reply.idempotency: absent", worlds.HANDED_OVER),
    Removal("release.head: term =", worlds.TWO_AGENTS),
    Removal("takeover.head: term =", worlds.TWO_AGENTS),
    Removal("accept_handoff.head: no agent", side.PICK_UP),
    Removal("issue_ticket.ticket: absent", side.TICKET_TWICE_ISSUED),
    Removal("redeem_ticket.ticket: expires_at >=", side.TICKET_EXPIRED),
    Removal("spend.budget: no stopped", side.MODEL_CALLS),
    Removal("spend.budget: no model_calls", side.MODEL_CALLS),
    Removal("spend.budget: model_calls =", side.MORE_MODEL_CALLS),
    Removal("announced.events: exists", side.PUSH_AND_DELETE),
    Removal("postpone.item: GSI1SK =", side.LOST_START),
)

_FIRST = _of(
    "accept", "head: absent", "idempotency: absent", "message: absent", "run: absent", "events: absent"
)


def _first_but(term: str) -> tuple[str, ...]:
    return (*(each for each in _FIRST if each != f"accept.{term}"), "accept.rate: absent")


COVERED = (
    Removal("accept.head: absent", worlds.DOUBLE_DELIVERY, _first_but("head: absent")),
    Removal("accept.message: absent", worlds.LATE_WORKER, _first_but("message: absent")),
    Removal("accept.run: absent", worlds.LATE_WORKER, _first_but("run: absent")),
    Removal(
        "accept.events: absent",
        worlds.DOUBLE_TEXTING,
        _of("accept", "head: evt =", "previous_run: state in"),
    ),
    Removal(
        "accept.head: epoch =",
        worlds.TAKEN_OVER,
        _of("accept", "events: absent", "head: mode =", "head: evt ="),
    ),
    Removal(
        "accept.head: mode =",
        worlds.TAKEN_OVER,
        _of("accept", "head: evt =", "events: absent", "head: epoch ="),
    ),
    Removal(
        "accept.previous_run: state in", worlds.TAKEN_OVER, _of("accept", "events: absent", "head: evt =")
    ),
    Removal(
        "finish.head: active_run =",
        worlds.LATE_WORKER,
        _of("finish", "events: absent", "run: state =", "head: evt =", "reply: absent"),
    ),
    Removal(
        "finish.head: epoch =",
        worlds.TAKEN_OVER,
        _of("finish", "head: evt =", "head: active_run =", "events: absent", "run: state ="),
    ),
    Removal(
        "finish.run: state =",
        worlds.TAKEN_OVER,
        _of("finish", "head: evt =", "events: absent", "head: active_run =", "head: epoch ="),
    ),
    Removal("finish.run: state in", worlds.CANCELLED, _of("finish", "head: active_run =", "head: evt =")),
    Removal(
        "finish.events: absent",
        worlds.DOUBLE_TEXTING,
        _of("finish", "head: active_run =", "run: state =", "head: epoch =", "head: evt ="),
    ),
    Removal(
        "finish.reply: absent",
        worlds.LATE_WORKER,
        _of("finish", "head: evt =", "run: state =", "head: active_run =", "events: absent"),
    ),
    Removal(
        "finish.run: execution =",
        worlds.FAILED_ELSEWHERE,
        switched=("a finish looks whose run it is",),
    ),
    Removal("finish.run: deadline <=", worlds.EARLY_SWEEPER, switched=("a sweeper looks at the deadline",)),
    Removal(
        "human_reply.events: absent", worlds.TWO_AGENTS, _of("human_reply", "head: evt =", "head: agent =")
    ),
    Removal(
        "human_reply.head: agent =", worlds.TWO_AGENTS, _of("human_reply", "events: absent", "head: evt =")
    ),
    Removal(
        "human_reply.head: evt =",
        worlds.HANDED_OVER,
        _of("human_reply", "head: mode =", "head: agent =", "events: absent"),
    ),
    Removal("release.events: absent", worlds.TWO_AGENTS, _of("release", "head: evt =")),
    Removal("release.head: evt =", worlds.HANDED_OVER, _of("release", "events: absent")),
    Removal("takeover.head: evt =", worlds.TAKEN_OVER, _of("takeover", "events: absent")),
    Removal(
        "takeover.events: absent",
        worlds.HANDED_OVER,
        _of("takeover", "previous_run: state in", "head: evt ="),
    ),
    Removal(
        "accept.head: seq =",
        worlds.DOUBLE_TEXTING,
        _of(
            "accept",
            "head: epoch =",
            "head: evt =",
            "message: absent",
            "events: absent",
            "idempotency: absent",
            "run: absent",
            "rate: version =",
        ),
    ),
    Removal("accept_handoff.head: evt =", side.PICK_UP, _of("accept_handoff", "events: absent")),
    Removal("accept_handoff.events: absent", side.PICK_UP, _of("accept_handoff", "head: evt =")),
    Removal(
        "redeem_ticket.ticket: entity =", side.TICKET_REUSED, _of("redeem_ticket", "ticket: expires_at >=")
    ),
)

BEHIND = (
    # every change of mode raises epoch and term and ends the run; every agent is set and removed by one
    Removal(
        "finish.head: mode =",
        worlds.TAKEN_OVER,
        _of("finish", "head: epoch =", "head: evt =", "head: active_run =", "events: absent", "run: state ="),
    ),
    Removal("takeover.head: mode =", worlds.TWO_AGENTS, _of("takeover", "head: term =")),
    Removal("release.head: mode =", worlds.TWO_AGENTS, _of("release", "head: term =")),
    Removal("release.head: agent =", worlds.TWO_AGENTS, _of("release", "head: term =")),
    Removal("accept_handoff.head: mode =", side.PICK_UP, _of("accept_handoff", "head: no agent")),
    Removal("accept_handoff.head: term =", side.PICK_UP, _of("accept_handoff", "head: no agent")),
    Removal(
        "human_reply.head: mode =",
        worlds.HANDED_OVER,
        _of("human_reply", "head: agent =", "head: evt =", "events: absent"),
    ),
    # a number is given once: whoever writes HEAD raises `evt`, and what a number names is written with it
    Removal("finish.trigger: absent", worlds.PROTECTED, _of("finish", "head: evt =")),
    Removal("finish.next_run: absent", worlds.PROTECTED, _of("finish", "head: evt =")),
    Removal("release.trigger: absent", worlds.HANDED_OVER, _of("release", "head: evt =", "events: absent")),
    Removal("release.next_run: absent", worlds.HANDED_OVER, _of("release", "head: evt =", "events: absent")),
    Removal(
        "human_reply.message: absent",
        worlds.HANDED_OVER,
        _of("human_reply", "head: evt =", "head: agent =", "head: mode =", "events: absent"),
    ),
    # an open run has no ending in its log
    Removal(
        "finish.run_log: absent",
        worlds.LATE_WORKER,
        _of("finish", "run: state =", "head: evt =", "head: active_run =", "events: absent", "reply: absent"),
    ),
    Removal(
        "accept.run_log: absent",
        worlds.DOUBLE_TEXTING,
        _of("accept", "previous_run: state in", "head: evt =", "events: absent"),
    ),
    Removal(
        "takeover.run_log: absent",
        worlds.TAKEN_OVER,
        _of("takeover", "previous_run: state in", "head: evt =", "events: absent"),
    ),
    Removal(
        "takeover.previous_run: state in", worlds.TAKEN_OVER, _of("takeover", "head: evt =", "events: absent")
    ),
)
"""Never the last to refuse: another guard of the same transaction, itself shown above, refuses whatever they would."""

DECISIONS = {
    "in HUMAN mode nothing starts": worlds.TAKEN_OVER,
    "behind a protected run nothing starts": worlds.PROTECTED,
    "three supersedes protect": worlds.FOUR_MESSAGES,
    "what waited is started by the ending": worlds.PROTECTED,
    "a remembered message is replayed": worlds.DOUBLE_DELIVERY,
}
"""Decision guards that nothing covers."""
