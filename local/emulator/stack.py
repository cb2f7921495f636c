"""Deploy a built template: upload what `sam package` would, execute one change set."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
import zipfile
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from local.emulator.settings import ROOT
from local.emulator.template_file import UPLOADED_PROPERTY, load_template

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from local.emulator.process import Emulator
    from local.emulator.stock import Foreign

ARTIFACTS = "turngate-artifacts"
_NO_CHANGES = "didn't contain changes"
_EPOCH = (1980, 1, 1, 0, 0, 0)


class DeployError(RuntimeError):
    """Raised when CloudFormation refuses or rolls back; the message names the resources and reasons."""


def deploy(
    built_template: Path,
    emulator: Emulator,
    stack_name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    deadline: float = 60.0,
) -> dict[str, str]:
    """Create or update the stack from a built template; returns its outputs. `DeployError` on any failure.

    A template without changes leaves the stack as it is.
    """
    template = _upload(built_template, emulator)
    cloudformation = emulator.client("cloudformation")
    kind = "UPDATE" if _exists(cloudformation, stack_name) else "CREATE"
    change_set = f"turngate-{time.time_ns()}"
    try:
        cloudformation.create_change_set(
            StackName=stack_name,
            ChangeSetName=change_set,
            ChangeSetType=kind,
            TemplateBody=json.dumps(template),
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in (parameters or {}).items()],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
    except ClientError as error:
        raise DeployError(f"{stack_name}: {error}") from error
    until = time.monotonic() + deadline
    described = _poll(
        until,
        lambda: cloudformation.describe_change_set(StackName=stack_name, ChangeSetName=change_set),
        lambda found: not found["Status"].endswith(("PENDING", "PROGRESS")),
    )
    if _NO_CHANGES in described.get("StatusReason", ""):
        return _outputs(cloudformation.describe_stacks(StackName=stack_name)["Stacks"][0])
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
    return _outputs(stack)


def _outputs(stack: dict[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _upload(built_template: Path, emulator: Emulator) -> dict[str, Any]:
    template = load_template(built_template)
    storage = emulator.client("s3")
    with contextlib.suppress(storage.exceptions.BucketAlreadyOwnedByYou):
        location: Foreign = {"LocationConstraint": emulator.settings.region}
        storage.create_bucket(Bucket=ARTIFACTS, CreateBucketConfiguration=location)
    sent: set[str] = set()
    for resource in template.get("Resources", {}).values():
        field = UPLOADED_PROPERTY.get(resource.get("Type", ""))
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
    """A zip with the same bytes for the same files: the emulator's package cache goes by its hash.

    Kept beside the build, because compressing the layers takes longer than all the rest of a deployment.
    """
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and "__pycache__" not in p.parts]
    state = [(str(p.relative_to(folder)), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    kept = ROOT / ".local" / "zips" / f"{hashlib.sha256(repr((str(folder), state)).encode()).hexdigest()}.zip"
    if kept.exists():
        return kept.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in files:
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes(), compresslevel=1)
    kept.parent.mkdir(parents=True, exist_ok=True)
    scratch = kept.with_suffix(f".{os.getpid()}")
    scratch.write_bytes(buffer.getvalue())
    scratch.rename(kept)
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
