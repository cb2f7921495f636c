"""The HTTP side: four routes, strict bodies, refusals as OpenAI-like error documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette  # type: ignore[import-not-found]  # in .venvs/demo-model only
from starlette.concurrency import run_in_threadpool  # type: ignore[import-not-found]  # as above
from starlette.exceptions import HTTPException  # type: ignore[import-not-found]  # as above
from starlette.responses import JSONResponse, StreamingResponse  # type: ignore[import-not-found]  # as above
from starlette.routing import Route  # type: ignore[import-not-found]  # as above

from local.demo_model.chat_request import ChatRequest, read_chat_request
from local.demo_model.completion import MODEL, complete, stream, usage
from local.demo_model.embeddings import read_embeddings_request, write_vectors
from local.demo_model.encoder import DIMENSIONS, SentenceEncoder
from local.demo_model.fields import JsonObject, decode
from local.demo_model.problems import RefusedRequestError
from local.demo_model.replying import recent_passages, reply
from local.demo_model.scoring import recent_catalogues
from local.demo_model.understanding import understand

if TYPE_CHECKING:
    from starlette.requests import Request  # type: ignore[import-not-found]  # as above
    from starlette.responses import Response  # as above

MAX_BODY_BYTES = 8 * 1024 * 1024


class DemoModel:
    """The model behind the routes: an encoder and what it remembers of recent prompts."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder = encoder
        self._catalogues = recent_catalogues(encoder)
        self._passages = recent_passages(encoder)

    def answer(self, request: ChatRequest) -> dict[str, Any]:
        """Do the task that the response schema names; any other name is refused."""
        if request.schema_name not in {"understanding", "reply"}:
            raise RefusedRequestError(
                f"this model knows the schemas understanding and reply, not {request.schema_name}",
                "unknown_schema",
                "response_format.json_schema.name",
            )
        document = decode(request.document, "the last message's content")
        if request.schema_name == "understanding":
            return understand(document, self.encoder, self._catalogues)
        return reply(document, self.encoder, self._passages)


def build_app(model: DemoModel) -> Starlette:
    """The ASGI application around one model."""

    async def chat_completions(request: Request) -> Response:
        checked = read_chat_request(await _read_body(request))
        answer = await run_in_threadpool(model.answer, checked)
        completion = complete(checked, answer)
        if checked.stream:
            return StreamingResponse(stream(checked, completion), media_type="text/event-stream")
        return JSONResponse(completion)

    async def embeddings(request: Request) -> Response:
        checked = read_embeddings_request(await _read_body(request))
        vectors = await run_in_threadpool(model.encoder.encode, checked.texts)
        return JSONResponse(
            {
                "object": "list",
                "model": MODEL,
                "data": write_vectors(vectors, as_base64=checked.as_base64),
                "usage": usage(checked.prompt_tokens),
            }
        )

    async def models(_: Request) -> Response:
        entry = {"id": MODEL, "object": "model", "created": 0, "owned_by": "turngate", "simulated": True}
        return JSONResponse({"object": "list", "data": [entry]})

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "model": MODEL, "dimensions": DIMENSIONS, "simulated": True})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat_completions, methods=["POST"]),
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", models),
            Route("/health", health),
        ],
        exception_handlers={RefusedRequestError: _refuse, HTTPException: _refuse_route},
    )


async def _read_body(request: Request) -> JsonObject:
    """The body as a JSON object; its size is checked while it arrives, not by what the header claims."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > MAX_BODY_BYTES:
            message = f"the body has more than {MAX_BODY_BYTES} bytes"
            raise RefusedRequestError(message, "request_too_large", status=413)
    return decode(bytes(received), "the body")


async def _refuse(_: Request, error: RefusedRequestError) -> Response:
    return JSONResponse(error.as_json(), status_code=error.status)


async def _refuse_route(request: Request, error: HTTPException) -> Response:
    message = f"{error.detail}: {request.method} {request.url.path}"
    refused = RefusedRequestError(message, "unknown_url", status=error.status_code)
    return JSONResponse(refused.as_json(), status_code=error.status_code, headers=error.headers)
