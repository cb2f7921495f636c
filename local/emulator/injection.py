"""Where recorder and faults touch ministack: its AWS dispatcher, its @connections API, its state machines."""

from __future__ import annotations

import asyncio
import json
import time
from contextvars import ContextVar
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from local.emulator import stock
from local.emulator.faults import Call, FaultPlan, FaultRule, error_answer, task_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from local.emulator.invocations import Invocations, RunningInvocation
    from local.emulator.recorder import Recorder
    from local.emulator.stock import Foreign

    Answer = tuple[int, dict[str, str], Any]

_cut: ContextVar[dict[str, bool] | None] = ContextVar("cut", default=None)
_CONNECTION_OPERATIONS = {"POST": "PostToConnection", "GET": "GetConnection", "DELETE": "DeleteConnection"}
# IAM names the action otherwise than the API names the operation
_OPERATION_OF_ACTION = {"InvokeFunction": "Invoke"}
_BAD_GATEWAY: Answer = (500, {"Content-Type": "application/json"}, b"{}")


class AwsTap:
    """Records AWS calls and lets faults strike them, below any SDK and above ministack's services."""

    def __init__(self, recorder: Recorder, faults: FaultPlan, invocations: Invocations) -> None:
        self._recorder = recorder
        self._faults = faults
        self._invocations = invocations
        self.keeps_bodies = False
        self._functions: dict[str, str] = {}

    def learn_caller(self, access_key: str, function: str) -> None:
        """Calls signed with this key come from this function (with AUTH each function has a key of its own)."""
        self._functions[access_key] = function

    def install(self) -> None:
        """Wrap the two dispatchers of ministack."""
        app = stock.module("app")
        gateway = stock.module("services.apigateway")
        router = stock.module("core.router")
        actions = stock.module("core.iam_actions")
        stock_dispatch, stock_connections = app._dispatch_service_request, gateway.handle_connections_api

        async def dispatch(
            method: str, path: str, headers: dict[str, str], body: bytes, query: Foreign, request_id: str
        ) -> Answer:
            routing = app._routing_params(method, path, headers, body, query)
            service = router.detect_service(method, path, headers, routing)
            action = actions.extract_iam_action(service, method, path, headers, body, routing) or ""
            action = action.partition(":")[2]
            operation = (
                _target_operation(headers) or _OPERATION_OF_ACTION.get(action, action) or f"{method} {path}"
            )

            async def call() -> Answer:
                answer: Answer = await stock_dispatch(method, path, headers, body, query, request_id)
                return answer

            caller = self._caller(router.extract_access_key_id(headers, query))
            return await self._observed(service, operation, caller, headers, path, body, call)

        async def connections(
            method: str, api_id: str, stage: str, connection_id: str, body: bytes, headers: dict[str, str]
        ) -> Answer:
            async def call() -> Answer:
                answer: Answer = await stock_connections(method, api_id, stage, connection_id, body, headers)
                return answer

            operation = _CONNECTION_OPERATIONS.get(method, method)
            caller = self._caller(router.extract_access_key_id(headers, {}))
            return await self._observed("execute-api", operation, caller, headers, connection_id, body, call)

        app._dispatch_service_request = dispatch
        gateway.handle_connections_api = connections

    def cutting(self, application: Foreign) -> Foreign:
        """The application, with connections cut instead of answered where a fault asks for it."""

        async def served(scope: dict[str, Any], receive: Foreign, send: Foreign) -> None:
            if scope["type"] != "http":
                await application(scope, receive, send)
                return
            mark = {"cut": False}
            _cut.set(mark)

            async def send_or_cut(message: dict[str, Any]) -> None:
                if not mark["cut"]:
                    await send(message)
                else:
                    _connection(send).abort()

            await application(scope, receive, send_or_cut)

        return served

    def _caller(self, access_key: str | None) -> str:
        return self._functions.get(access_key or "", access_key or "")

    async def _observed(
        self,
        service: str,
        operation: str,
        caller: str,
        headers: dict[str, str],
        path: str,
        body: bytes,
        call: Callable[[], Awaitable[Answer]],
    ) -> Answer:
        request = _parsed(body) if service == "dynamodb" else None
        invocation = self._invocations.of(headers.get("x-amzn-trace-id", ""))
        text = f"{path} {bytes(body or b'').decode(errors='replace')}"
        event = invocation.event if invocation is not None else None
        rule = self._faults.decide(Call(False, service, operation, caller, text, event))
        if rule is None:
            answer = await call()
        else:
            self._recorder.write(
                "fault", action=rule.action, service=service, operation=operation, caller=caller
            )
            items = len((request or {}).get("TransactItems") or [])
            answer = await self._struck(rule, items, call, invocation)
        fields: dict[str, Any] = {
            "service": service,
            "operation": operation,
            "caller": caller,
            "user_agent": headers.get("user-agent", ""),
            "bytes": len(body or b""),
            "status": answer[0],
            "error": _error_type(answer),
            "invocation": invocation.request_id if invocation is not None else None,
        }
        if request is not None:
            fields["request"] = request
        if self.keeps_bodies:
            fields["body"] = text
        self._recorder.write("aws", **fields)
        return answer

    async def _struck(
        self,
        rule: FaultRule,
        items: int,
        call: Callable[[], Awaitable[Answer]],
        invocation: RunningInvocation | None,
    ) -> Answer:
        mark = _cut.get()
        match rule.action:
            case "crash" if mark is not None and invocation is not None and invocation.plan.crash is not None:
                if rule.where == "after":
                    await call()
                invocation.plan.crash()
                mark["cut"] = True
                return _BAD_GATEWAY
            case "slow":
                answer = await call() if rule.where == "after" else None
                await asyncio.sleep(rule.seconds)
                return answer if answer is not None else await call()
            case "duplicate":
                await call()
                return await call()
            case "timeout" | "lost_response" if mark is not None:
                if rule.where == "after" or rule.action == "lost_response":
                    await call()
                await asyncio.sleep(rule.seconds)
                mark["cut"] = True
                return _BAD_GATEWAY
            case "lost_response_500":
                await call()
                return error_answer(rule.action, items)
            case _:
                if rule.where == "after":
                    await call()
                return error_answer(rule.action, items)


class StateTap:
    """Records each state a machine enters, also inside a Map, where ministack's history has no events.

    What a Task state calls directly (`sqs:sendMessage`, `lambda:invoke`) never leaves ministack as an AWS call;
    rules strike it as service `states-task`.
    """

    def __init__(self, recorder: Recorder, faults: FaultPlan) -> None:
        self._recorder = recorder
        self._faults = faults

    def install(self) -> None:
        """Wrap the functions that run one state."""
        states = stock.module("services.stepfunctions")
        for kind in ("pass", "choice", "wait"):
            self._wrap(states, f"_execute_{kind}", context_position=2)
        for kind in ("task", "map", "parallel"):
            self._wrap(states, f"_execute_{kind}", context_position=3)
        stock_invoke = states._invoke_resource

        def invoke(resource: str, given: Foreign) -> Foreign:
            operation = resource.partition(":states:::")[2] or "lambda:invoke"
            text = json.dumps(given, ensure_ascii=False, default=str)
            rule = self._faults.decide(Call(False, "states-task", operation, "", text))
            if rule is None:
                return stock_invoke(resource, given)
            self._recorder.write("fault", action=rule.action, service="states-task", operation=operation)
            if rule.action == "slow":
                time.sleep(rule.seconds)
                return stock_invoke(resource, given)
            if rule.where == "after" or rule.action in ("duplicate", "lost_response"):
                stock_invoke(resource, given)
            if rule.action == "duplicate":
                return stock_invoke(resource, given)
            raise states._ExecutionError(task_error(operation, rule.action), "injected")

        states._invoke_resource = invoke

    def _wrap(self, states: Foreign, name: str, context_position: int) -> None:
        stock_execute = getattr(states, name)

        def execute(definition: dict[str, Any], *arguments: Foreign) -> Foreign:
            context = arguments[context_position - 1]
            self._recorder.write(
                "state",
                machine=context["StateMachine"]["Name"],
                execution=context["Execution"]["Id"],
                type=definition.get("Type"),
                name=context["State"]["Name"],
                resource=definition.get("Resource"),
            )
            return stock_execute(definition, *arguments)

        setattr(states, name, execute)


def _connection(send: Foreign) -> Foreign:
    """The transport under an ASGI `send` of hypercorn: stream, HTTP protocol, server, each bound to the next."""
    stream = send.__self__
    protocol = stream.send.__self__
    return protocol.send.__self__.writer.transport


def _target_operation(headers: dict[str, str]) -> str:
    return headers.get("x-amz-target", "").rpartition(".")[2]


def _error_type(answer: Answer) -> str | None:
    status, headers, body = answer
    if status < HTTPStatus.BAD_REQUEST:
        return None
    named = next((value for key, value in headers.items() if key.lower() == "x-amzn-errortype"), "")
    document = _parsed(body) if isinstance(body, bytes) else {}
    return (named or str(document.get("__type", ""))).rpartition("#")[2] or None


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
