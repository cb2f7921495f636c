"""What the launcher can be told, read once from the environment.

Every variable starts with `TURNGATE_EMULATOR_`. Nothing else of the caller's environment survives: ministack
and the Lambdas would otherwise see it (ministack copies its own environment into every function).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX = "TURNGATE_EMULATOR_"
ROOT = Path(__file__).resolve().parents[2]
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR")


class SettingsError(ValueError):
    """Raised when a TURNGATE_EMULATOR_ variable is unknown or cannot be read."""


@dataclass(frozen=True, slots=True)
class EmulatorSettings:
    """One emulator process.

    `port` is bound on 127.0.0.1 only. `runtime_python` is the interpreter with awslambdaric that runs the
    Lambdas. `cache_dir` keeps unzipped packages between starts. Worker limits bound the memory: one worker is
    40 to 55 MB. `observe_file` (JSON lines) switches recorder and fault injection on.
    """

    port: int = 4566
    region: str = "eu-west-1"
    account_id: str = "000000000000"
    auth: bool = True
    runtime_python: Path = ROOT / ".venvs" / "runtime" / "bin" / "python"
    cache_dir: Path = ROOT / ".local" / "emulator" / "packages"
    state_dir: Path | None = None
    workers_per_function: int = 4
    workers_in_all: int = 20
    idle_seconds: float = 300.0
    parallel_cold_starts: int = 2
    server_threads: int = 128
    observe_file: Path | None = None
    log_level: str = "WARNING"
    without: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> EmulatorSettings:
        """Read the settings; `SettingsError` names the variable that cannot be used."""
        given = {
            key.removeprefix(PREFIX).lower(): value
            for key, value in environment.items()
            if key.startswith(PREFIX)
        }
        values: dict[str, object] = {}
        for name, text in given.items():
            read = _READERS.get(name)
            if read is None:
                raise SettingsError(f"{PREFIX}{name.upper()} is not a setting; known: {', '.join(_READERS)}")
            try:
                values[name] = read(text)
            except ValueError as error:
                raise SettingsError(f"{PREFIX}{name.upper()}={text!r}: {error}") from error
        return cls(**values)  # type: ignore[arg-type]  # _READERS gives each field its declared type

    def environment(self) -> dict[str, str]:
        """The variables that make another launcher read these same settings."""
        variables = {
            f"{PREFIX}{name.upper()}": _written(getattr(self, name)) for name in _READERS if name != "without"
        }
        variables[f"{PREFIX}WITHOUT"] = ",".join(sorted(self.without))
        return {name: text for name, text in variables.items() if text}

    def ministack_environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The whole environment ministack is to see: loopback only, no MQTT, no SFTP, no Docker."""
        environment = {key: inherited[key] for key in _KEPT if key in inherited}
        environment |= {
            "AUTH": "true" if self.auth else "false",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "BIND_HOST": "127.0.0.1",
            "DOCKER_HOST": "unix:///nonexistent/no-docker.sock",
            "GATEWAY_PORT": str(self.port),
            "IOT_MTLS_ENABLED": "0",
            "LOG_LEVEL": self.log_level,
            "MINISTACK_ACCOUNT_ID": self.account_id,
            "MINISTACK_REGION": self.region,
            "MINISTACK_WORKER_THREADS": str(self.server_threads),
            "SFTP_ENABLED": "0",
        }
        if self.state_dir is not None:
            environment |= {
                "PERSIST_STATE": "1",
                "S3_DATA_DIR": str(self.state_dir / "s3"),
                "S3_PERSIST": "1",
                "STATE_DIR": str(self.state_dir / "services"),
            }
        return environment


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.lower() == "true"


def _at_least_one(text: str) -> int:
    if int(text) < 1:
        raise ValueError("must be 1 or more")
    return int(text)


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (part.strip() for part in text.split(","))))


def _written(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


_READERS: dict[str, Callable[[str], object]] = {
    "port": _at_least_one,
    "region": str,
    "account_id": str,
    "auth": _flag,
    "runtime_python": Path,
    "cache_dir": Path,
    "state_dir": Path,
    "workers_per_function": _at_least_one,
    "workers_in_all": _at_least_one,
    "idle_seconds": float,
    "parallel_cold_starts": _at_least_one,
    "server_threads": _at_least_one,
    "observe_file": Path,
    "log_level": str,
    "without": _names,
}
