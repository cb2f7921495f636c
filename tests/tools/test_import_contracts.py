"""The import contracts hold, and each of them is shown to bite: one planted breach per contract is found."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = Path(sys.executable).with_name("lint-imports")
BREACHES = {
    "layers/turngate/turngate/domain/late.py": "import time\n",
    "layers/turngate/turngate/domain/upward.py": "import turngate.ports\n",
    "layers/turngate/turngate/protocol/direct.py": "import turngate.adapters\n",
    "layers/turngate/turngate/protocol/random_wait.py": "import random\n",
    "layers/turngate/turngate/protocol/downward.py": "import functions.turn.first.handler\n",
    "layers/turngate/turngate/stray.py": "",
    "functions/turn/govern/handler.py": "import turngate.states.govern\nimport turngate.domain.proxy\n",
    "layers/turngate/turngate/domain/proxy.py": "import turngate.wiring\n",
    "functions/turn/first/handler.py": "import turngate.adapters\nimport boto3\n",
    "functions/turn/second/handler.py": "import functions.turn.first.handler\n",
}
# contracts can only forbid by name; the domain may import nothing else than these
DOMAIN_MAY_IMPORT = {
    "msgspec",
    "turngate",
    "__future__",
    "abc",
    "base64",
    "bisect",
    "collections",
    "copy",
} | {
    *("dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "hmac"),
    *(
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "string",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
        "zlib",
    ),
}
FOUND = (
    "turngate.domain.late -> time",
    "turngate.domain.upward -> turngate.ports",
    "turngate.protocol.direct -> turngate.adapters",
    "turngate.protocol.random_wait -> random",
    "turngate.protocol.downward -> functions.turn.first.handler",
    "- turngate.stray",
    "functions.turn.govern.handler -> turngate.domain.proxy",
    "functions.turn.first.handler -> turngate.adapters",
    "functions.turn.first.handler -> boto3",
    "functions.turn.second.handler -> functions.turn.first.handler",
)


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PYTHONPATH": os.pathsep.join(["layers/turngate", "."]),
        "PATH": os.defpath,
        "PYTHONIOENCODING": "utf-8",
        "LANG": "C.UTF-8",
    }
    return subprocess.run(  # noqa: S603 (our own venv's tool)
        [str(LINT), "--no-cache"], cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def test_the_repository_keeps_its_import_contracts() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken." in done.stdout


@pytest.fixture
def copy_with_breaches(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "layers" / "turngate", tmp_path / "layers" / "turngate")
    shutil.copy(ROOT / ".importlinter", tmp_path)
    for name, source in BREACHES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return tmp_path


def test_every_contract_bites(copy_with_breaches: Path) -> None:
    done = lint(copy_with_breaches)
    assert done.returncode == 1, done.stderr
    assert " 0 kept, 7 broken." in done.stdout
    assert [breach for breach in FOUND if breach not in done.stdout] == []


def strange_imports(domain: Path) -> set[tuple[str, str]]:
    """(file, top-level package) of what the domain imports and may not."""
    found = set()
    for path in sorted(domain.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            found |= {(path.name, name.partition(".")[0]) for name in names}
    return {(file, name) for file, name in found if name not in DOMAIN_MAY_IMPORT}


def test_the_domain_imports_msgspec_and_pure_parts_of_the_standard_library_only() -> None:
    domain = ROOT / "layers" / "turngate" / "turngate" / "domain"
    assert list(domain.glob("*.py"))
    assert strange_imports(domain) == set()


def test_a_strange_import_of_the_domain_is_found(copy_with_breaches: Path) -> None:
    domain = copy_with_breaches / "layers" / "turngate" / "turngate" / "domain"
    (domain / "late.py").write_text("def f():\n    from yaml.nodes import Node\n", encoding="utf-8")
    assert strange_imports(domain) == {("late.py", "yaml")}
