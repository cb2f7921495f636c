"""Build the SAM template, start the emulator, deploy into it: the demo and the stack tests share this path.

`build` runs the unmodified `sam build`; `start_emulator` runs `local.emulator` in its own process group with a
clean environment; `deploy` uploads what `sam package` would and executes one change set.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from local.emulator.settings import EmulatorSettings
from local.emulator.template_file import load_template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from local.emulator.stock import Foreign

ROOT = Path(__file__).resolve().parents[1]
ARTIFACTS = "turngate-artifacts"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UPLOADED = {
    "AWS::Serverless::Function": "CodeUri",
    "AWS::Serverless::LayerVersion": "ContentUri",
    "AWS::Serverless::StateMachine": "DefinitionUri",
}


class BuildError(RuntimeError):
    """Raised when `sam build` fails; the message is its output."""


class EmulatorError(RuntimeError):
    """Raised when the emulator does not start in time; the message ends with its log."""


class DeployError(RuntimeError):
    """Raised when CloudFormation refuses or rolls back; the message names the resources and reasons."""


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

    def clear_faults(self, seed: int = 0) -> None:
        """Drop all rules and restart their random numbers."""
        self._observer("DELETE", f"faults?seed={seed}")

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


def host_runtime() -> str:
    """The running interpreter as a Lambda runtime name, for example `python3.11`."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def build(
    template: Path, build_dir: Path, runtime: str | None = None, *, sources: tuple[Path, ...] = ()
) -> Path:
    """`sam build` the template for the host's Python; returns the built template.

    Skipped when neither the template nor anything under its folder's sources changed (`sources`: the folders
    and files to watch, default the template's folder). The template must take the parameter `PythonRuntime`.
    """
    runtime = runtime or host_runtime()
    built = build_dir / "template.yaml"
    stamp = build_dir / ".fingerprint"
    fingerprint = _fingerprint((template, *(sources or (template.parent,))), runtime)
    if built.exists() and stamp.exists() and stamp.read_text() == fingerprint:
        return built
    command = [str(ROOT / ".venvs/sam/bin/sam"), "build", "--template-file", str(template)]
    command += [
        "--build-dir",
        str(build_dir),
        "--cache-dir",
        str(build_dir.parent / f"{build_dir.name}-cache"),
    ]
    command += ["--cached", "--parallel", "--parameter-overrides", f"PythonRuntime={runtime}"]
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "/usr/bin:/bin")]),
        "HOME": os.environ.get("HOME", "/tmp"),  # noqa: S108  # SAM writes its settings somewhere
        "LANG": "C.UTF-8",
        "SAM_CLI_TELEMETRY": "0",
        "AWS_DEFAULT_REGION": EmulatorSettings().region,
    }
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE"):
        if name in os.environ:
            environment[name] = os.environ[name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  # the pinned SAM CLI
    if done.returncode != 0:
        raise BuildError(f"sam build failed:\n{done.stdout}{done.stderr}")
    stamp.write_text(fingerprint)
    return built


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


def deploy(
    built_template: Path,
    emulator: Emulator,
    stack_name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    deadline: float = 60.0,
) -> dict[str, str]:
    """Create or update the stack from a built template; returns its outputs. `DeployError` on any failure."""
    template = _upload(built_template, emulator)
    cloudformation = emulator.client("cloudformation")
    kind = "UPDATE" if _exists(cloudformation, stack_name) else "CREATE"
    change_set = f"turngate-{time.time_ns()}"
    cloudformation.create_change_set(
        StackName=stack_name,
        ChangeSetName=change_set,
        ChangeSetType=kind,
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in (parameters or {}).items()],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    until = time.monotonic() + deadline
    described = _poll(
        until,
        lambda: cloudformation.describe_change_set(StackName=stack_name, ChangeSetName=change_set),
        lambda found: not found["Status"].endswith(("PENDING", "PROGRESS")),
    )
    if described["Status"] != "CREATE_COMPLETE":
        raise DeployError(f"{stack_name}: {described.get('StatusReason', described['Status'])}")
    cloudformation.execute_change_set(StackName=stack_name, ChangeSetName=change_set)
    stack = _poll(
        until,
        lambda: cloudformation.describe_stacks(StackName=stack_name)["Stacks"][0],
        lambda found: not found["StackStatus"].endswith("IN_PROGRESS"),
    )
    if stack["StackStatus"] != f"{kind}_COMPLETE":
        raise DeployError(f"{stack_name} is {stack['StackStatus']}: {_failures(cloudformation, stack_name)}")
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


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


def _upload(built_template: Path, emulator: Emulator) -> dict[str, Any]:
    template = load_template(built_template)
    storage = emulator.client("s3")
    with contextlib.suppress(storage.exceptions.BucketAlreadyOwnedByYou):
        location: Foreign = {"LocationConstraint": emulator.settings.region}
        storage.create_bucket(Bucket=ARTIFACTS, CreateBucketConfiguration=location)
    sent: set[str] = set()
    for resource in template.get("Resources", {}).values():
        field = _UPLOADED.get(resource.get("Type", ""))
        local = resource.get("Properties", {}).get(field) if field else None
        if not isinstance(local, str) or "://" in local:
            continue
        path = (built_template.parent / local).resolve()
        content = _zipped(path) if path.is_dir() else _definition(path)
        key = hashlib.sha256(content).hexdigest()
        if key not in sent:
            storage.put_object(Bucket=ARTIFACTS, Key=key, Body=content)
            sent.add(key)
        resource["Properties"][field] = f"s3://{ARTIFACTS}/{key}"
    return template


def _zipped(folder: Path) -> bytes:
    """A zip with the same bytes for the same files: the emulator's package cache goes by its hash."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def _definition(path: Path) -> bytes:
    """A state machine as JSON: ministack reads no YAML where AWS reads both."""
    if path.suffix == ".json":
        return path.read_bytes()
    return json.dumps(load_template(path)).encode()


def _exists(cloudformation: Foreign, stack_name: str) -> bool:
    try:
        cloudformation.describe_stacks(StackName=stack_name)
    except cloudformation.exceptions.ClientError:
        return False
    return True


def _poll(until: float, ask: Foreign, done: Foreign) -> Foreign:
    while not done(found := ask()):
        if time.monotonic() > until:
            raise DeployError(f"no end in sight: {found.get('Status') or found.get('StackStatus')}")
        time.sleep(0.02)
    return found


def _failures(cloudformation: Foreign, stack_name: str) -> str:
    events = cloudformation.describe_stack_events(StackName=stack_name)["StackEvents"]
    failed = [e for e in events if e["ResourceStatus"].endswith("FAILED")]
    return "; ".join(f"{e['LogicalResourceId']}: {e.get('ResourceStatusReason', '')}" for e in failed)


def _fingerprint(paths: tuple[Path, ...], runtime: str) -> str:
    digest = hashlib.sha256(runtime.encode())
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            if "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(path.parent)}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()
