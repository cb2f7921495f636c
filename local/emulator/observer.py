"""Recorder and fault injection inside the emulator's process, for tests; absent unless a file is set.

Recorded, one JSON line each (`recorder.py`):

| kind | fields |
|---|---|
| aws | service, operation, caller (function or access key), user_agent, bytes, status, error, request (DynamoDB) |
| lambda | function, request_id, ms, outcome (ok, error, timeout, exit), cold, error |
| state | machine, execution, type, name, resource: one line each time a state is entered |
| fault | action and what it struck |

Faults are told over HTTP: `POST /_turngate/faults` (a rule, see `faults.py`), `GET` (rules with counts),
`DELETE ?seed=n` (drop all, start the random numbers anew). `GET /_turngate/census` counts live workers.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from local.emulator.faults import FaultPlan, FaultRule, FaultRuleError
from local.emulator.injection import AwsTap, StateTap
from local.emulator.lambda_worker import FunctionSpec, KillPlan, Outcome
from local.emulator.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from local.emulator.stock import Foreign
    from local.emulator.worker_pools import WorkerPools

FAULTS_PATH = "/_turngate/faults"
CENSUS_PATH = "/_turngate/census"


class Observer:
    """Sees every call and invocation of one emulator and lets the rules in force strike them."""

    def __init__(self, file: Path) -> None:
        self.recorder = Recorder(file)
        self.faults = FaultPlan()
        self._pools: WorkerPools | None = None
        self._aws = AwsTap(self.recorder, self.faults)

    def attach(self, application: Foreign) -> Foreign:
        """Tap ministack's dispatchers; returns the ASGI application to serve instead of `application`."""
        self._aws.install()
        StateTap(self.recorder, self.faults).install()
        return _WithAdministration(self._aws.cutting(application), self)

    def close(self) -> None:
        """End the record."""
        self.recorder.close()

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
        rule = self.faults.decide(True, "lambda", "Invoke", spec.name)
        if rule is not None:
            self.recorder.write("fault", action=rule.action, function=spec.name, request_id=request_id)
        if rule is not None and rule.action == "invoke_twice":
            pools.invoke(spec, event, request_id, trace_id)
        outcome = pools.invoke(spec, event, request_id, trace_id, self._plan(rule))
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
        )
        return outcome

    def _plan(self, rule: FaultRule | None) -> KillPlan | None:
        if rule is None:
            return None
        match rule.action:
            case "delay":
                return KillPlan(delay=rule.seconds)
            case "kill_before":
                return KillPlan(kill="before")
            case "kill_after":
                return KillPlan(kill="after")
            case "kill_during":
                return KillPlan(kill="during", during_seconds=self.faults.uniform(rule.seconds))
            case _:
                return None


class _WithAdministration:
    """The emulator with the two paths tests steer it by."""

    def __init__(self, application: Foreign, observer: Observer) -> None:
        self._application = application
        self._observer = observer

    async def __call__(self, scope: dict[str, Any], receive: Foreign, send: Foreign) -> None:
        if scope["type"] != "http" or scope["path"] not in (FAULTS_PATH, CENSUS_PATH):
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
        match scope["method"]:
            case "GET":
                return 200, faults.report()
            case "DELETE":
                query = parse_qs(scope["query_string"].decode())
                faults.clear(int(query.get("seed", ["0"])[0]))
                return 200, {}
            case "POST":
                try:
                    return 201, {"id": faults.add(FaultRule.parse(json.loads(body)))}
                except (FaultRuleError, ValueError, TypeError) as error:
                    return 400, {"error": str(error)}
            case _:
                return 405, {"error": "GET, POST or DELETE"}
