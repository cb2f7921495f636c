"""`sam build`, for the host's own Python and only when something changed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

from local.emulator.settings import ROOT, EmulatorSettings
from local.emulator.template_file import UPLOADED_PROPERTY, load_template


class BuildError(RuntimeError):
    """Raised when `sam build` fails; the message is its output."""


def host_runtime() -> str:
    """The running interpreter as a Lambda runtime name, for example `python3.11`."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def host_architecture() -> str:
    """This machine's processor as Lambda names it."""
    return "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"


def build(
    template: Path, build_dir: Path, runtime: str | None = None, *, also: tuple[Path, ...] = ()
) -> Path:
    """`sam build` the template for the host's Python; returns the built template.

    Skipped when neither the template, nor the folders and files it names, nor `also` (lock files, sources a
    Makefile build reaches) changed since. The template takes the parameter `PythonRuntime`, which SAM also
    resolves in `BuildMethod`. Concurrent builds into one directory wait for each other.
    """
    runtime = runtime or host_runtime()
    built, stamp = build_dir / "template.yaml", build_dir.with_name(f"{build_dir.name}.fingerprint")
    build_dir.parent.mkdir(parents=True, exist_ok=True)
    with build_dir.with_name(f"{build_dir.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fingerprint = _fingerprint((template, *_local_sources(template), *also), runtime)
        if not (built.exists() and stamp.exists() and stamp.read_text() == fingerprint):
            stamp.unlink(missing_ok=True)
            _sam_build(template, build_dir, runtime)
            stamp.write_text(fingerprint)
    return built


def _sam_build(template: Path, build_dir: Path, runtime: str) -> None:
    # SAM keeps `.aws-sam/deps` in its working directory, whatever the build directory: give each build its own
    scratch = build_dir.with_name(f"{build_dir.name}.sam")
    scratch.mkdir(parents=True, exist_ok=True)
    command = [str(ROOT / ".venvs/sam/bin/sam"), "build", "--cached", "--parallel"]
    command += ["--template-file", str(template.resolve()), "--build-dir", str(build_dir.resolve())]
    command += ["--cache-dir", str(scratch.resolve() / "cache")]
    # wheels in the layers must fit this machine; a template without the parameter ignores it
    command += ["--parameter-overrides", f"PythonRuntime={runtime} Architecture={host_architecture()}"]
    kept = ("HOME", "PIP_CERT", "PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "SSL_CERT_FILE")
    environment = {name: os.environ[name] for name in kept if name in os.environ} | {
        # SAM looks for an interpreter of exactly the runtime's version, and ours is one
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "LANG": "C.UTF-8",
        "SAM_CLI_TELEMETRY": "0",
        "AWS_DEFAULT_REGION": EmulatorSettings().region,
    }
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  # the pinned SAM CLI
    if done.returncode != 0:
        raise BuildError(f"sam build failed:\n{done.stdout}{done.stderr}")


def _local_sources(template: Path) -> list[Path]:
    resources = load_template(template).get("Resources", {}).values()
    named = [
        resource.get("Properties", {}).get(UPLOADED_PROPERTY.get(resource.get("Type", ""), ""))
        for resource in resources
    ]
    return sorted({template.parent / path for path in named if isinstance(path, str)})


def _fingerprint(paths: tuple[Path, ...], runtime: str) -> str:
    digest = hashlib.sha256(runtime.encode())
    for path in paths:
        found = path.rglob("*") if path.is_dir() else [path]
        files = sorted(file for file in found if file.is_file())  # what is missing is for SAM to say
        for file in files:
            if "__pycache__" not in file.parts:
                digest.update(f"{file}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()
