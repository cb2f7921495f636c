"""A real DynamoDB API for tests: the local emulator as a process of its own, and the one table in it."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.session import get_session

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venvs" / "emulator" / "bin" / "python"
START_TIMEOUT_S = 60


class EmulatorDidNotStartError(RuntimeError):
    """Raised when the emulator process ended or stayed silent; its output is in the message."""


@contextmanager
def running_emulator(log: Path) -> Iterator[str]:
    """The endpoint of an emulator that lives as long as the block; its output goes to `log`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(log.parent),
        "TURNGATE_EMULATOR_PORT": str(port),
        "TURNGATE_EMULATOR_AUTH": "false",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own emulator, from its own venv
            [str(PYTHON), "-m", "local.emulator"],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_healthy(process, endpoint, log)
        yield endpoint
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_healthy(process: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2):  # noqa: S310 - loopback
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise EmulatorDidNotStartError(log.read_text(errors="replace")[-2000:])


def dynamodb_client(endpoint: str, *, read_timeout_s: float = 30.0, connections: int = 10) -> Any:
    """A client as the product makes it: no retries of its own."""
    return get_session().create_client(
        "dynamodb",
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        endpoint_url=endpoint,
        config=Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            read_timeout=read_timeout_s,
            max_pool_connections=connections,
        ),
    )


def create_table(client: Any, name: str) -> None:
    """The table as template.yaml has it: PK, SK and the sparse due index."""
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "S"}
            for attribute in ("PK", "SK", "GSI1PK", "GSI1SK")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "GSI1",
                "KeySchema": [
                    {"AttributeName": "GSI1PK", "KeyType": "HASH"},
                    {"AttributeName": "GSI1SK", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
