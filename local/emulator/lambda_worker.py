"""One Lambda execution environment: a process of the real AWS runtime client with only its own environment."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from local.emulator.runtime_api import Invocation, RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from local.emulator.stock import Json

_POLL = 0.05
_LOG_KEPT = 1 << 20


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """All that decides what a worker is; two functions share no worker unless every field is equal."""

    name: str
    arn: str
    handler: str
    runtime: str
    timeout: float
    memory: int
    version: str
    code: Path
    layers: tuple[Path, ...]
    environment: tuple[tuple[str, str], ...]
    credentials: tuple[tuple[str, str], ...]
    region: str
    endpoint: str
    logging: tuple[tuple[str, str], ...] = ()

    def process_environment(self, runtime_api: str, scratch: str) -> dict[str, str]:
        """What the handler sees: AWS's reserved variables, the function's own, and the emulator's endpoint.

        /var/task comes before the layers on the path, as on AWS. The endpoint is the one variable AWS does
        not set: it is how boto3 finds the emulator. `scratch` stands for AWS's /tmp, which no other execution
        environment sees.
        """
        path = [self.code]
        for layer in self.layers:
            path += [layer / "python", layer / "python" / "lib" / self.runtime / "site-packages"]
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "en_US.UTF-8",
            "TMPDIR": scratch,
            "TZ": ":UTC",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
            **dict(self.environment),
            **dict(self.credentials),
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{self.runtime}",
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self.memory),
            "AWS_LAMBDA_FUNCTION_VERSION": self.version,
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{self.name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": time.strftime("%Y/%m/%d/")
            + f"[{self.version}]{os.urandom(16).hex()}",
            "AWS_LAMBDA_RUNTIME_API": runtime_api,
            "AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
            **dict(self.logging),
            "LAMBDA_TASK_ROOT": str(self.code),
            "LAMBDA_RUNTIME_DIR": "/var/runtime",
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "_HANDLER": self.handler,
        }


@dataclass(slots=True)
class Outcome:
    """How an invocation ended. `body` is the handler's value, or AWS's error document for the other kinds."""

    kind: Literal["ok", "error", "timeout", "exit"]
    body: Json
    log: str = ""
    cold: bool = False


@dataclass(slots=True)
class KillPlan:
    """A fault to play on one invocation: when its process dies, and how long the invocation is held first."""

    delay: float = 0.0
    kill: Literal["never", "before", "during", "after"] = "never"
    during_seconds: float = 0.0
    crash: Callable[[], None] | None = None
    """Kills the process at once; set by the worker that takes the invocation, None before that."""


class LambdaWorker:
    """A process that serves one invocation at a time until it is closed or dies."""

    def __init__(self, spec: FunctionSpec, python: Path) -> None:
        self.spec = spec
        self.last_used = time.monotonic()
        self._python = python
        # a file instead of a pipe: lines are complete when the reply arrives, and nobody has to drain it
        self._output = tempfile.TemporaryFile(mode="ab+", buffering=0)  # noqa: SIM115  # closed with the worker
        self._read_up_to = 0
        # removed with the worker: what one stack left in the host's /tmp would be another stack's stale cache
        self._scratch = tempfile.TemporaryDirectory(prefix="lambda-", ignore_cleanup_errors=True)
        self._api: RuntimeApi | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether the process can take an invocation."""
        return self._process is not None and self._process.poll() is None

    def start(self, patience: float) -> Outcome | None:
        """Start the process and import the handler; None when it is ready, else the failed outcome."""
        self._api = api = RuntimeApi()
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
            [str(self._python), "-m", "awslambdaric", self.spec.handler],
            cwd=self.spec.code,
            env=self.spec.process_environment(api.address, self._scratch.name),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + patience
        while not api.settled.wait(_POLL):
            if not self.alive:
                return self._failed("exit", f"Runtime exited with code {self._process.returncode} in init")
            if time.monotonic() > deadline:
                self._kill()
                return self._failed("timeout", f"init did not end within {patience:g} seconds")
        if api.init_error is not None:
            self._process.wait(timeout=5)
            return Outcome("error", api.init_error, self._new_output())
        return None

    def invoke(
        self, event: Json, request_id: str, trace_id: str | None, plan: KillPlan | None = None
    ) -> Outcome:
        """Run one event; never raises for what the handler does."""
        plan = plan or KillPlan()
        plan.crash = self._kill
        if plan.delay:
            time.sleep(plan.delay)
        if plan.kill == "before":
            return self._killed(request_id)
        assert self._api is not None, "start() comes first"  # noqa: S101  # a defect of the pool, not an input
        timeout = self.spec.timeout
        started = time.monotonic()
        self._api.offer(
            Invocation(
                request_id,
                json.dumps(event).encode(),
                int((time.time() + timeout) * 1000),
                self.spec.arn,
                trace_id,
            )
        )
        killer = None
        if plan.kill == "during":
            killer = threading.Timer(plan.during_seconds, self._kill)
            killer.start()
        try:
            return self._await(request_id, started + timeout, plan)
        finally:
            if killer is not None:
                killer.cancel()
            self.last_used = time.monotonic()

    def close(self) -> None:
        """Kill the process and free its port; safe to call again."""
        self._kill()
        if self._process is not None:
            self._process.wait()
        if self._api is not None:
            self._api.close()
            self._api = None
        self._output.close()
        self._scratch.cleanup()

    def _await(self, request_id: str, deadline: float, plan: KillPlan) -> Outcome:
        assert self._api is not None  # noqa: S101  # invoke() has checked
        while True:
            was_alive = self.alive
            reply = self._api.reply(min(_POLL, deadline - time.monotonic()))
            if reply is not None and plan.kill == "after":
                return self._killed(request_id)
            if reply is not None:
                return Outcome("ok" if reply.kind == "response" else "error", reply.body, self._new_output())
            if not was_alive:
                return self._killed(request_id)
            if time.monotonic() >= deadline:
                self._kill()
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
                seconds = f"{self.spec.timeout:.2f}"
                return self._failed("timeout", f"{stamp} {request_id} Task timed out after {seconds} seconds")

    def _killed(self, request_id: str) -> Outcome:
        self._kill()
        assert self._process is not None  # noqa: S101  # start() comes first
        code = self._process.wait()
        reason = "signal: killed" if code < 0 else f"exit status {code}"
        return self._failed("exit", f"RequestId: {request_id} Error: Runtime exited with error: {reason}")

    def _failed(self, kind: Literal["timeout", "exit"], message: str) -> Outcome:
        error = "Sandbox.Timedout" if kind == "timeout" else "Runtime.ExitError"
        return Outcome(kind, {"errorType": error, "errorMessage": message}, self._new_output())

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _new_output(self) -> str:
        size = os.fstat(self._output.fileno()).st_size
        text = os.pread(self._output.fileno(), size - self._read_up_to, self._read_up_to).decode(
            errors="replace"
        )
        self._read_up_to = size
        if size > _LOG_KEPT:
            self._output.truncate(0)
            self._read_up_to = 0
        return text


@dataclass(slots=True)
class WorkerLimits:
    """Bounds of all pools together; what does not fit waits its turn, as memory is what a laptop lacks."""

    per_function: int
    in_all: int
    idle_seconds: float
    parallel_cold_starts: int
    init_seconds: float = field(default=60.0)


def function_environment(variables: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """A function's configured variables, sorted so that equal ones compare equal."""
    return tuple(sorted((name, str(value)) for name, value in variables.items()))
