"""A chat endpoint that answers at once, in a process of its own, so that its CPU is nobody's.

    python bench/fake_model.py SCENARIO

Prints its port when it listens on 127.0.0.1. Everybody has a base URL of his own, `/<name>/v1`; `GET /<name>/asked`
tells how many requests came by it and of how many bytes in all. Standard library only, HTTP/1.1 with connections kept.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

MAX_HEAD = 1 << 16


class FakeModel:
    """`answers`: the content of a completion by the name of the JSON schema that was asked for, "" for none."""

    def __init__(self, answers: dict[str, str]) -> None:
        self._completions = {name: _completion(content) for name, content in answers.items()}
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def answer(self, path: str, body: bytes) -> bytes:
        name = path.split("/")[1]
        if path.endswith("/asked"):
            return json.dumps({"requests": self._requests[name], "bytes": self._bytes[name]}).encode()
        self._requests[name] += 1
        self._bytes[name] += len(body)
        schema = json.loads(body).get("response_format", {}).get("json_schema", {}).get("name", "")
        return self._completions[schema]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the client leaves."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                answer = self.answer(head[0].split()[1], body)
                status = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                writer.write(status % len(answer) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def _completion(content: str) -> bytes:
    message = {"role": "assistant", "content": content}
    document = {
        "id": "fake",
        "object": "chat.completion",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
    return json.dumps(document, ensure_ascii=False).encode()


async def main(scenario: Path) -> None:
    model = FakeModel(json.loads(scenario.read_text(encoding="utf-8"))["answers"])
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0, limit=MAX_HEAD)
    async with server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
