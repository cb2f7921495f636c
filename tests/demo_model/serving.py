"""Starts the demo model as the launcher does, and writes the requests its tests send."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.demo_model.catalogue import INTENTS

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venvs" / "demo-model" / "bin" / "python"
PATIENCE = 30.0


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


TEXT = {"type": "string"}
SCHEMAS = {
    "understanding": _object(
        rewritten=TEXT,
        sub_questions=_array(
            _object(text=TEXT, candidates=_array(_object(id=TEXT, score={"type": "number"})))
        ),
    ),
    "reply": _object(
        parts=_array(
            _object(
                part_id=TEXT,
                outcome={"type": "string", "enum": ["answer", "decline"]},
                text=TEXT,
                used=_array(TEXT),
            )
        )
    ),
}


def response_format(name: str) -> dict[str, Any]:
    """The strict response format of one of the two tasks."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": SCHEMAS[name]}}


@dataclass(frozen=True)
class Server:
    base_url: str
    process: subprocess.Popen[str]


def start_server() -> Server:
    """Start a server on a free port and wait for its first line."""
    if not PYTHON.exists():
        pytest.fail(f"{PYTHON.relative_to(ROOT)} is missing: run `make setup`", pytrace=False)
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [str(PYTHON), "-m", "local.demo_model", "--port", "0"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        arrived = selector.select(PATIENCE)
    line = process.stdout.readline() if arrived else ""
    prefix = "listening on "
    if not line.startswith(prefix):
        process.kill()
        rest = process.communicate()[0]
        pytest.fail(f"the demo model did not start: {line}{rest}", pytrace=False)
    return Server(line.removeprefix(prefix).strip(), process)


def stop_server(server: Server) -> str:
    """End the server as the launcher does; returns what it still printed."""
    server.process.send_signal(signal.SIGTERM)
    return server.process.communicate(timeout=PATIENCE)[0]


def understanding_document(*messages: str, language: str = "zh-CN", **changes: Any) -> dict[str, Any]:
    """The document of task "understanding" about the bicycle shop."""
    return {
        "task": "understand",
        "input": [{"message_seq": seq, "text": text} for seq, text in enumerate(messages, start=1)],
        "history": [],
        "language": language,
        "intents": INTENTS,
        **changes,
    }
