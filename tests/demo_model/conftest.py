"""One demo model process for all these tests, and the real client of the product in front of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
import psutil
import pytest

from tests.demo_model.serving import (
    PATIENCE,
    Server,
    response_format,
    start_server,
    stop_server,
    understanding_document,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    started = start_server()
    yield started
    stop_server(started)


@pytest.fixture(scope="session")
def server_process(server: Server) -> psutil.Process:
    return psutil.Process(server.process.pid)


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=server.base_url, api_key="none-needed", max_retries=0, timeout=PATIENCE
    ) as made:
        yield made


@pytest.fixture(scope="session")
def ask(client: openai.OpenAI) -> Callable[..., dict[str, Any]]:
    """Send one task document under its schema and return the parsed answer."""

    def send(name: str, document: dict[str, Any]) -> dict[str, Any]:
        completion = client.chat.completions.create(
            model="any",
            messages=[
                {"role": "system", "content": "Answer with JSON."},
                {"role": "user", "content": json.dumps(document, ensure_ascii=False)},
            ],
            response_format=response_format(name),
        )
        return json.loads(completion.choices[0].message.content)

    return send


@pytest.fixture(scope="session")
def understand(ask: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    return lambda *messages, **changes: ask("understanding", understanding_document(*messages, **changes))
