"""Where the spine does its work, and how a call is known to belong to one conversation.

A place is a state of the machine or a route of a function. `during` are texts that the event of its invocation
holds; functions that serve batches (`by_request`) are told by what each request holds instead. Braces are markers,
filled in per conversation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    function: str
    during: tuple[str, ...] = ()
    by_request: bool = False
    in_machine: bool = False


UNDERSTAND, COMPOSE = '"task": "understand"', '"task": "compose"'
PLACES = (
    Place("IssueTicket.guests", "IssueTicket", ("{pad}",)),
    Place("IssueTicket.tickets", "IssueTicket", ("{principal}", "/v1/chat/tickets")),
    Place("Authorize.http", "Authorize", ("{token}",)),
    Place("Authorize.socket", "Authorize", ("{ticket}",)),
    Place("Connect", "Connect", ("{principal}",)),
    Place("AcceptMessage.resume", "AcceptMessage", ("{principal}", "resume")),
    Place("AcceptMessage", "AcceptMessage", ("{message}",)),
    Place("AcceptMessage.overtaking", "AcceptMessage", ("{message2}",)),
    Place("AcceptMessage.stored", "AcceptMessage", ("{message5}",)),
    Place("BeginTurn", "BeginTurn", ("{conversation}",), in_machine=True),
    Place("ResumePending", "ResumePending", ("{conversation}",), in_machine=True),
    Place("Understand", "Model", ("{conversation}", UNDERSTAND), in_machine=True),
    Place("Govern", "Govern", ("{principal}",), in_machine=True),
    Place("Retrieve", "Retrieve", ("{conversation}",), in_machine=True),
    Place("ComposeReply", "Model", ("{conversation}", COMPOSE), in_machine=True),
    Place("CommitTurn", "CommitTurn", ("{conversation}",), in_machine=True),
    Place("CommitTurn.closing", "CommitTurn", ("{conversation}", '"state": "resumed"'), in_machine=True),
    Place("FailTurn", "FailTurn", ("{conversation}",), in_machine=True),
    Place("PushEvents", "PushEvents", ("{conversation}",), by_request=True),
    Place("StartRun", "StartRun", ("{conversation}",), by_request=True),
    Place("SweepDueItems", "SweepDueItems", (), by_request=True),
)
