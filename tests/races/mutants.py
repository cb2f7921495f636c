"""Guards taken away from the protocol while it races, to see the oracle object.

Each set is a guard with those that cover it (`tests/model/guards.py` says which): removing one of a covered pair
changes nothing that anybody could see."""

from __future__ import annotations

from tests.races.oracle import Chaos, Plan

CALM = Plan(
    conversations=12,
    messages=8,
    burst=4,
    patience=0.5,
    stops_at_violation=True,
    threads=12,
    takeovers=0.5,
    cancels=0.3,
    seed=3,
    chaos=Chaos(dies_before=0, dies_after=0, loses_answer=0, sleeps=0.4, longest_sleep_s=0.06),
)
"""Nobody dies: what is seen is the missing guard alone. Many are late, which is when guards matter."""

_NEVER_LOOKS = (
    "accept.head: evt =",
    "accept.head: seq =",
    "accept.head: epoch =",
    "accept.events: absent",
    "accept.message: absent",
    "accept.run: absent",
    "accept.previous_run: state in",
    "accept.run_log: absent",
    # the bucket is one item a principal: its condition puts a customer's messages in order by accident
    "accept.rate: absent",
    "accept.rate: version =",
)

MUTANTS: dict[str, tuple[str, ...]] = {
    "a run is claimed by whoever comes": ("begin.run: state =",),
    "a message does not look whether it is the latest": _NEVER_LOOKS,
    "a message is remembered over and over": ("accept.idempotency: absent", *_NEVER_LOOKS),
    "a commit does not look whether its run counts": (
        "finish.head: evt =",
        "finish.head: epoch =",
        "finish.head: active_run =",
        "finish.head: mode =",
        "finish.events: absent",
        "finish.run: state =",
        "finish.run_log: absent",
    ),
}
