"""Start one emulator process, talk to it, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from local.emulator.settings import ROOT, EmulatorSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.emulator.stock import Foreign


class EmulatorError(RuntimeError):
    """Raised when the emulator does not start in time; the message ends with its log."""


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator on 127.0.0.1. `process_id` leads its process group; `log` collects its output."""

    settings: EmulatorSettings
    process_id: int
    log: Path

    @property
    def endpoint(self) -> str:
        """Base URL of the AWS endpoint."""
        return f"http://127.0.0.1:{self.settings.port}"

    def client(self, service: str, **options: Foreign) -> Foreign:
        """A boto3 client with the emulator's root rights (unless keys are given) and without retries.

        `options` are those of `boto3.client`; a `config` is merged over ours.
        """
        config = Config(inject_host_prefix=False, retries={"total_max_attempts": 1}, max_pool_connections=64)
        return boto3.client(
            service,
            config=config.merge(options.pop("config", Config())),
            **{**self._root_access(), **options},
        )

    def _root_access(self) -> dict[str, str]:
        return {
            "endpoint_url": self.endpoint,
            "region_name": self.settings.region,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
        }

    def http_url(self, api_id: str) -> str:
        """Base URL of an HTTP API on its $default stage."""
        return f"{self.endpoint}/_aws/execute-api/{api_id}/$default"

    def websocket_url(self, api_id: str, stage: str) -> str:
        """URL a WebSocket client connects to."""
        return f"ws://127.0.0.1:{self.settings.port}/_aws/execute-api/{api_id}/{stage}"

    def connections_url(self, api_id: str, stage: str) -> str:
        """Endpoint of the @connections API, for `apigatewaymanagementapi` clients."""
        return f"{self.endpoint}/_aws/execute-api/{api_id}/{stage}"

    def add_fault(self, **rule: Foreign) -> str:
        """Put a fault rule in force; needs `observe_file`. Returns its id."""
        return str(self._observer("POST", "faults", rule)["id"])

    def faults(self) -> dict[str, dict[str, Any]]:
        """Rules in force with how many calls each matched and injected."""
        return dict(self._observer("GET", "faults"))

    def drop_fault(self, identity: str) -> dict[str, Any]:
        """Take one rule out of force; its last report: the rule, `matched` and `injected`."""
        return dict(self._observer("DELETE", f"faults?id={identity}")[identity])

    def crash(self, function: str, *during: str) -> int:
        """Kill the process of each running invocation of a function whose event contains these texts; how many."""
        return int(self._observer("POST", "crash", {"function": function, "during": during})["killed"])

    def keep_events(self, keep: bool = True) -> None:
        """Whether the record holds the events of invocations, and the bodies of AWS calls, from now on."""
        self._observer("POST", "recorder", {"events": keep})

    def clear_faults(self, seed: int = 0) -> None:
        """Drop all rules and restart their random numbers."""
        self._observer("DELETE", f"faults?seed={seed}")

    def census(self) -> dict[str, int]:
        """Live Lambda workers by function name; needs `observe`."""
        return dict(self._observer("GET", "census"))

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        """What was recorded so far, in order (see local.emulator.observer)."""
        if self.settings.observe_file is None:
            raise EmulatorError("start_emulator(observe=True) is needed for records")
        lines = self.settings.observe_file.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines]
        return [record for record in found if kind is None or record["kind"] == kind]

    def _observer(self, method: str, path: str, body: object = None) -> Foreign:
        request = urllib.request.Request(  # noqa: S310  # our own loopback server
            f"{self.endpoint}/_turngate/{path}",
            method=method,
            data=json.dumps(body).encode() if body else None,
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310  # see above
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise EmulatorError(f"{method} {path}: {error.read().decode()}") from error


@contextlib.contextmanager
def start_emulator(
    settings: EmulatorSettings | None = None,
    *,
    work_dir: Path | None = None,
    observe: bool = False,
    deadline: float = 20.0,
) -> Iterator[Emulator]:
    """Run an emulator on a free port until the block ends; nothing is left behind, also on Ctrl-C.

    `settings.port` is replaced by a free one. `work_dir` receives the log and the record (default: a
    temporary folder, removed at the end). `observe` switches recorder and faults on. `EmulatorError` when
    `/_ministack/health` does not answer within `deadline` seconds.
    """
    with contextlib.ExitStack() as cleanup:
        if work_dir is None:
            work_dir = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="turngate-emulator-")))
        work_dir.mkdir(parents=True, exist_ok=True)
        settings = replace(settings or EmulatorSettings(), port=_free_port())
        if observe:
            settings = replace(settings, observe_file=work_dir / "record.jsonl")
        log = work_dir / "emulator.log"
        process = _spawn(settings, work_dir, log)
        cleanup.callback(_stop, process)
        emulator = Emulator(settings, process.pid, log)
        _wait_until_healthy(emulator, process, time.monotonic() + deadline)
        yield emulator


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _spawn(settings: EmulatorSettings, work_dir: Path, log: Path) -> subprocess.Popen[bytes]:
    scratch = work_dir / "tmp"
    scratch.mkdir(exist_ok=True)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(work_dir),
        "LANG": "C.UTF-8",
        "TMPDIR": str(scratch),
        "PYTHONPATH": str(ROOT),
        **settings.environment(),
    }
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603  # our own interpreter
            [str(ROOT / ".venvs/emulator/bin/python"), "-m", "local.emulator"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_until_healthy(emulator: Emulator, process: subprocess.Popen[bytes], until: float) -> None:
    while True:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{emulator.endpoint}/_ministack/health", timeout=2).close()  # noqa: S310  # loopback
            return
        if process.poll() is not None or time.monotonic() > until:
            state = "ended" if process.poll() is not None else "does not answer"
            tail = emulator.log.read_text(errors="replace")[-2000:]
            raise EmulatorError(f"the emulator {state}:\n{tail}")
        time.sleep(0.02)


def _stop(process: subprocess.Popen[bytes], patience: float = 5.0) -> None:
    """SIGTERM, then SIGKILL to the whole group: Lambda workers share it, so none outlives the emulator."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
