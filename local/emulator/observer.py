"""Recorder and fault injection inside the emulator's process, for tests; absent unless a file is set.

Recorded, one JSON line each (`recorder.py`):

| kind | fields |
|---|---|
| aws | service, operation, caller (function or access key), user_agent, bytes, status, error, invocation, request |
| lambda | function, request_id, ms, outcome (ok, error, timeout, exit), cold, error; event when asked for |
| state | machine, execution, type, name, resource: one line each time a state is entered |
| fault | action and what it struck |

`invocation` is the request id of the Lambda that makes a call; `request` is kept for DynamoDB only, `body` (of every
call) when asked for.

Faults are told over HTTP: `POST /_turngate/faults` (a rule, see `faults.py`), `GET` (rules with counts),
`DELETE ?id=…` (drop one and tell its counts), `DELETE ?seed=n` (drop all, start the random numbers anew).
`GET /_turngate/census` counts live workers. `POST /_turngate/crash {function, during}` kills the process of a running
invocation. `POST /_turngate/recorder {events}` says whether events of invocations, and bodies of calls, are recorded.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from local.emulator.faults import Call, FaultPlan, FaultRule, FaultRuleError
from local.emulator.injection import AwsTap, StateTap
from local.emulator.invocations import Invocations, RunningInvocation, event_text, new_trace_id
from local.emulator.lambda_worker import FunctionSpec, KillPlan, Outcome
from local.emulator.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from local.emulator.stock import Foreign
    from local.emulator.worker_pools import WorkerPools

FAULTS_PATH = "/_turngate/faults"
CENSUS_PATH = "/_turngate/census"
CRASH_PATH = "/_turngate/crash"
RECORDER_PATH = "/_turngate/recorder"


class Observer:
    """Sees every call and invocation of one emulator and lets the rules in force strike them."""

    def __init__(self, file: Path) -> None:
        self.recorder = Recorder(file)
        self.faults = FaultPlan()
        self._pools: WorkerPools | None = None
        self.invocations = Invocations()
        self.keeps_events = False
        self._aws = AwsTap(self.recorder, self.faults, self.invocations)

    def attach(self, application: Foreign) -> Foreign:
        """Tap ministack's dispatchers; returns the ASGI application to serve instead of `application`."""
        self._aws.install()
        StateTap(self.recorder, self.faults).install()
        return _WithAdministration(self._aws.cutting(application), self)

    def close(self) -> None:
        """End the record."""
        self.recorder.close()

    def keep_events(self, keep: bool) -> None:
        """Whether events of invocations and bodies of AWS calls are recorded from now on."""
        self.keeps_events = self._aws.keeps_bodies = keep

    def census(self) -> dict[str, int]:
        """Live workers by function."""
        return self._pools.census() if self._pools is not None else {}

    def invoke(
        self, pools: WorkerPools, spec: FunctionSpec, event: Foreign, request_id: str, trace_id: str | None
    ) -> Outcome:
        """Run an invocation as `WorkerPools.invoke` does, with the faults for it, and record it."""
        self._pools = pools
        self._aws.learn_caller(dict(spec.credentials).get("AWS_ACCESS_KEY_ID", ""), spec.name)
        started = time.perf_counter()
        trace_id = trace_id or new_trace_id()
        text = event_text(event)
        rule = self.faults.decide(Call(True, "lambda", "Invoke", spec.name, text))
        if rule is not None:
            self.recorder.write("fault", action=rule.action, function=spec.name, request_id=request_id)
        plan = self._plan(rule)
        with self.invocations.running(trace_id, RunningInvocation(spec.name, request_id, text, plan)):
            if rule is not None and rule.action == "invoke_twice":
                pools.invoke(spec, event, request_id, trace_id)
            outcome = pools.invoke(spec, event, request_id, trace_id, plan)
        error = (
            outcome.body.get("errorType") if outcome.kind != "ok" and isinstance(outcome.body, dict) else None
        )
        self.recorder.write(
            "lambda",
            function=spec.name,
            request_id=request_id,
            ms=round((time.perf_counter() - started) * 1000, 2),
            outcome=outcome.kind,
            cold=outcome.cold,
            error=error,
            **({"event": event} if self.keeps_events else {}),
        )
        return outcome

    def _plan(self, rule: FaultRule | None) -> KillPlan:
        match rule:
            case FaultRule(action="delay"):
                return KillPlan(delay=rule.seconds)
            case FaultRule(action="kill_before"):
                return KillPlan(kill="before")
            case FaultRule(action="kill_after"):
                return KillPlan(kill="after")
            case FaultRule(action="kill_during"):
                return KillPlan(kill="during", during_seconds=self.faults.uniform(rule.seconds))
            case _:
                return KillPlan()


_PATHS = (FAULTS_PATH, CENSUS_PATH, CRASH_PATH, RECORDER_PATH)


class _WithAdministration:
    """The emulator with the paths tests steer it by."""

    def __init__(self, application: Foreign, observer: Observer) -> None:
        self._application = application
        self._observer = observer

    async def __call__(self, scope: dict[str, Any], receive: Foreign, send: Foreign) -> None:
        if scope["type"] != "http" or scope["path"] not in _PATHS:
            await self._application(scope, receive, send)
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        status, document = self._answer(scope, body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(document).encode()})

    def _answer(self, scope: dict[str, Any], body: bytes) -> tuple[int, Any]:
        faults = self._observer.faults
        if scope["path"] == CENSUS_PATH:
            return 200, self._observer.census()
        if scope["path"] == CRASH_PATH:
            asked = json.loads(body)
            return 200, {"killed": self._observer.invocations.crash(asked["function"], asked["during"])}
        if scope["path"] == RECORDER_PATH:
            self._observer.keep_events(bool(json.loads(body)["events"]))
            return 200, {}
        match scope["method"]:
            case "GET":
                return 200, faults.report()
            case "DELETE":
                query = parse_qs(scope["query_string"].decode())
                if "id" in query:
                    return 200, faults.remove(query["id"][0])
                faults.clear(int(query.get("seed", ["0"])[0]))
                return 200, {}
            case "POST":
                try:
                    return 201, {"id": faults.add(FaultRule.parse(json.loads(body)))}
                except (FaultRuleError, ValueError, TypeError) as error:
                    return 400, {"error": str(error)}
            case _:
                return 405, {"error": "GET, POST or DELETE"}
