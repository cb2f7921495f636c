"""The same turn as a LangGraph graph whose state a SqliteSaver keeps, in the way its documentation shows: one thread a
conversation, messages by `add_messages`, a node a step. Runs in the peers' venv.

Generous to the peer: prompts show the last messages only, and the model is asked by the openai SDK itself, so what is
measured beyond the plain loop is the graph and its checkpoints."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from bench.plain_loop import WINDOW, Messages, Prompts

if TYPE_CHECKING:
    from bench.worker import Stopwatch

os.environ["LANGSMITH_TRACING"] = "false"
_ROLES = {"human": "user", "ai": "assistant"}
_STEPS = ("understand", "retrieve", "compose", "commit")


class TurnState(TypedDict):
    messages: Annotated[list[Any], add_messages]
    intents: list[str]
    documents: list[str]


class LangGraphTurns:
    def __init__(self, scenario: dict[str, Any], base_url: str) -> None:
        self._prompts = Prompts(scenario, base_url)
        self._question: str = scenario["question"]
        self._said: list[list[str]] = scenario["said"]
        self._documents: list[str] = scenario["documents"]
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        file = sqlite3.connect(Path(self._folder.name, "threads.sqlite"), check_same_thread=False)
        graph = StateGraph(TurnState)
        nodes = (self._understand, self._retrieve, self._compose, self._commit)
        for before, name, node in zip((START, *_STEPS), _STEPS, nodes, strict=False):
            graph.add_node(name, node)
            graph.add_edge(before, name)
        graph.add_edge(_STEPS[-1], END)
        self._graph = graph.compile(checkpointer=SqliteSaver(file))

    def seed(self, turns: int, conversation: str | None = None) -> str:
        thread = conversation or uuid.uuid4().hex
        messages: Messages = []
        for number in range(turns):
            question, reply = self._said[number % len(self._said)]
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
        self._graph.update_state(_thread(thread), {"messages": messages}, as_node=_STEPS[-1])
        return thread

    def turn(self, conversation: str, watch: Stopwatch) -> str:
        asked = {"messages": [{"role": "user", "content": self._question}]}
        with watch.step("turn"):
            state = self._graph.invoke(asked, _thread(conversation))
        return str(state["messages"][-1].content)

    def _understand(self, state: TurnState) -> dict[str, Any]:
        return {"intents": self._prompts.intents_of(*_history_and_question(state))}

    def _retrieve(self, _state: TurnState) -> dict[str, Any]:
        return {"documents": self._documents}

    def _compose(self, state: TurnState) -> dict[str, Any]:
        reply = self._prompts.answer(*_history_and_question(state))
        return {"messages": [{"role": "assistant", "content": reply}]}

    def _commit(self, _state: TurnState) -> dict[str, Any]:
        return {"intents": [], "documents": []}


def _history_and_question(state: TurnState) -> tuple[Messages, str]:
    shown = [
        {"role": _ROLES[message.type], "content": message.content}
        for message in state["messages"][-WINDOW - 1 :]
    ]
    return shown[:-1], shown[-1]["content"]


def _thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}
