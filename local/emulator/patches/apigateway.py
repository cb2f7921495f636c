"""API Gateway: WebSocket frames and the @connections API as AWS serves them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from local.emulator import stock
from local.emulator.patches.registry import PatchContext, patch

if TYPE_CHECKING:
    from local.emulator.stock import Foreign

POST_LIMIT_BYTES = 128 * 1024


class _DispatchedFunction:
    """Looks like ministack's worker to the WebSocket code and runs the function by the normal dispatcher."""

    def __init__(self, config: dict[str, Any], code: bytes) -> None:
        self._function = {"config": config, "code_zip": code}

    def invoke(self, event: dict[str, Any], request_id: str, **_: Foreign) -> dict[str, Any]:
        outcome = stock.module("services.lambda_svc")._execute_function(self._function, event)
        body = outcome.get("body")
        if not (outcome.get("error") or outcome.get("throttle")):
            return {"status": "ok", "result": body if isinstance(body, dict) else {}}
        frame = {
            "message": "Internal server error",
            "connectionId": event["requestContext"]["connectionId"],
            "requestId": request_id,
        }
        return {"status": "ok", "result": {"statusCode": 500, "body": json.dumps(frame)}}


@patch("websocket-dispatch")
def run_websocket_routes_by_the_normal_dispatcher(context: PatchContext) -> None:
    """A frame's function runs like any other invocation: own worker, own environment, logs, and errors hidden.

    AWS sends `{"message": "Internal server error", "connectionId", "requestId"}` when the function fails. Stock
    runs all frames on one shared worker, writes no logs and sends the exception's text to the client.
    """
    runtime = stock.module("core.lambda_runtime")
    stock_get = runtime.get_or_create_worker

    def get(name: str, config: dict[str, Any], code: bytes, qualifier: str = "$LATEST") -> Foreign:
        if str(config.get("Runtime", "")).startswith("python"):
            return _DispatchedFunction(config, code)
        return stock_get(name, config, code, qualifier)

    runtime.get_or_create_worker = get


@patch("websocket-frames-concurrent")
def run_the_frames_of_one_socket_concurrently(context: PatchContext) -> None:
    """Frames of one connection are handled at the same time, as AWS does; it promises no order.

    Stock waits for the function of a frame before it reads the next one: the race of two messages written at
    once, which this product exists to decide, would never happen.
    """
    gateway = stock.module("services.apigateway")
    stock_invoke = gateway._invoke_ws_lambda
    under_way: set[asyncio.Task[None]] = set()

    async def invoke(*arguments: Foreign, **options: Foreign) -> Foreign:
        connection_id, event_type = arguments[5], arguments[6]
        if event_type != "MESSAGE":
            return await stock_invoke(*arguments, **options)

        async def run() -> None:
            response = await stock_invoke(*arguments, **options)
            body = (response or {}).get("body")
            connection = gateway._ws_connections.get(connection_id)
            if body and connection is not None:
                await connection["outbox"].put(body if isinstance(body, str) else json.dumps(body))

        task = asyncio.ensure_future(run())
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        return None

    gateway._invoke_ws_lambda = invoke


@patch("connections-post-limit")
def refuse_posts_beyond_128_kilobytes(context: PatchContext) -> None:
    """PostToConnection of more than 128 KB is 413 PayloadTooLargeException.

    Stock delivers any size, so an oversized event would be seen first in production.
    """
    gateway = stock.module("services.apigateway")
    stock_handle = gateway.handle_connections_api

    async def handle(
        method: str, api_id: str, stage: str, connection_id: str, body: bytes, headers: dict[str, str]
    ) -> Foreign:
        if method == "POST" and len(body or b"") > POST_LIMIT_BYTES:
            error = {"Content-Type": "application/json", "x-amzn-ErrorType": "PayloadTooLargeException"}
            return 413, error, b'{"message":"Message too long"}'
        return await stock_handle(method, api_id, stage, connection_id, body, headers)

    gateway.handle_connections_api = handle


@patch("connection-times")
def tell_when_a_connection_was_opened(context: PatchContext) -> None:
    """`connectedAt` is the time of the handshake in every event and in GetConnection.

    Stock puts the time of each frame into events, and answers GetConnection with keys that no SDK reads.
    """
    gateway = stock.module("services.apigateway")
    stock_context, stock_handle = gateway._ws_request_context, gateway.handle_connections_api

    def request_context(
        api_id: str, route_key: str, stage: str, connection_id: str, *rest: Foreign
    ) -> dict[str, Any]:
        described: dict[str, Any] = stock_context(api_id, route_key, stage, connection_id, *rest)
        connection = gateway._ws_connections.get(connection_id)
        if connection is not None:
            described["connectedAt"] = int(connection["connectedAt"]) * 1000
        return described

    async def handle(method: str, *rest: Foreign) -> Foreign:
        status, headers, body = await stock_handle(method, *rest)
        if method == "GET" and status == HTTPStatus.OK:
            found = json.loads(body)
            answer = {
                "connectedAt": _iso(found["ConnectedAt"]),
                "lastActiveAt": _iso(found["LastActiveAt"]),
                "identity": found["Identity"],
            }
            body = json.dumps(answer).encode()
        return status, headers, body

    gateway._ws_request_context, gateway.handle_connections_api = request_context, handle


def _iso(epoch_seconds: float) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat()
