"""`make doctor`: what this machine has, what it lacks, and what to do about it. Standard library only."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MINIMUM = (3, 11)


def findings() -> list[tuple[bool, str, str]]:
    """(is it fine, what was looked at, what to do when it is not)."""
    version = ".".join(map(str, sys.version_info[:3]))
    found = [
        (sys.version_info >= MINIMUM, f"Python {version}", "install Python 3.11 or newer"),
        (importlib.util.find_spec("venv") is not None, "the venv module", "install python3-venv"),
        (shutil.which("make") is not None, "make", "install make"),
    ]
    for name in (".venv", ".venvs/emulator", ".venvs/sam", ".venvs/runtime", ".venvs/demo-model"):
        done = (ROOT / name / ".installed").exists()
        found.append((done, f"environment {name}", "make setup"))
    found.append(
        (shutil.which("chromium") is not None, "Chromium (browser tests)", "make setup-system, as root")
    )
    found.append((_has_cjk_font(), "a CJK font (screenshots)", "make setup-system, as root"))
    data = ROOT.parent / "shared" / "data" / "tau2_banking"
    found.append(
        (data.is_dir(), "../shared/data (bank tenant, hit rate)", "place the test data beside the project")
    )
    return found


def _has_cjk_font() -> bool:
    listing = shutil.which("fc-list")
    if listing is None:
        return False
    fonts = subprocess.run([listing, ":lang=zh"], capture_output=True, text=True, check=False)  # noqa: S603 - fc-list
    return bool(fonts.stdout.strip())


def main() -> int:
    found = findings()
    for fine, what, remedy in found:
        print(f"{'ok     ' if fine else 'missing'}  {what}{'' if fine else f'  →  {remedy}'}")
    return 0 if all(fine for fine, _, _ in found) else 1


if __name__ == "__main__":
    sys.exit(main())
