"""The import budget measures what a cold start imports, and names what is too dear or forbidden."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.import_budget import ImportFailedError, imported_modules, main, named_among
from tools.import_rules import read_import_rules

BURN = "sum(i * i for i in range(3_000_000))"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    layer = tmp_path / "layers" / "turngate" / "turngate"
    layer.mkdir(parents=True)
    (layer / "__init__.py").write_text("import decimal\n", encoding="utf-8")
    write_handler(tmp_path, "turn/decide", "import turngate\n")
    write_budget(tmp_path)
    return tmp_path


def write_handler(project: Path, name: str, source: str) -> None:
    folder = project / "functions" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "handler.py").write_text(source, encoding="utf-8")


def write_budget(project: Path, **changes: Any) -> None:
    imports = {
        "baseline": "import json",
        "slack": 0.1,
        "rounds": 1,
        "attempts": 1,
        "environment": {"AWS_REGION": "nowhere"},
        "classes": {"pure": {"hold": 50, "stretch": 1, "forbidden": ["sqlite3"]}},
        "only_in": {"wave": [], "decimal": ["turn/decide"]},
        "functions": {"turn/decide": {"class": "pure", "forbidden": ["turngate.adapters"]}},
    } | changes
    (project / "bench").mkdir(exist_ok=True)
    (project / "bench" / "budget.json").write_text(json.dumps({"imports": imports}), encoding="utf-8")


def test_a_function_within_its_budget_passes_and_its_ratio_is_printed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], project) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("turn/decide ")
    assert "hold 50.00" in line


def test_a_function_over_its_hold_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_handler(project, "turn/decide", f"{BURN}\n")
    write_budget(project, classes={"pure": {"hold": 1.5, "stretch": 1, "forbidden": []}})
    assert main([], project) == 1
    assert "turn/decide: " in (error := capsys.readouterr().err)
    assert "x import json, hold 1.5" in error


def test_forbidden_modules_join_those_of_class_function_and_repository(project: Path) -> None:
    budget = read_import_rules(project).functions["turn/decide"]
    assert budget.forbidden == {"sqlite3", "wave", "turngate.adapters"}


@pytest.mark.parametrize("module", ["sqlite3", "wave"])
def test_a_forbidden_module_is_found_even_when_the_layer_brings_it(
    project: Path, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = project / "layers" / "turngate" / "turngate" / "__init__.py"
    layer.write_text(f"import {module}\n", encoding="utf-8")
    assert main(["turn/decide"], project) == 1
    assert f"turn/decide imports {module}" in capsys.readouterr().err


def test_a_name_that_only_starts_like_a_forbidden_one_is_not_it() -> None:
    assert named_among(["openai", "mcp", "numpy"], {"openai_types", "mcp.client", "os"}) == ["mcp"]


def test_modules_are_those_of_a_fresh_interpreter(project: Path) -> None:
    modules = imported_modules("turn/decide", read_import_rules(project), project)
    assert {"handler", "turngate", "decimal"} <= modules
    assert "pytest" not in modules


def test_a_handler_sees_the_environment_of_the_budget(project: Path) -> None:
    write_handler(project, "turn/decide", "import os\nassert os.environ['AWS_REGION'] == 'nowhere'\n")
    assert main([], project) == 0


def test_a_handler_that_needs_more_of_the_environment_fails_with_its_traceback(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TABLE_NAME", "set outside only")
    write_handler(project, "turn/decide", "import os\nos.environ['TABLE_NAME']\n")
    with pytest.raises(ImportFailedError, match="KeyError: 'TABLE_NAME'"):
        imported_modules("turn/decide", read_import_rules(project), project)
    assert main([], project) == 1
    assert "functions/turn/decide" in capsys.readouterr().err


def test_functions_and_budgets_must_match(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_handler(project, "turn/new", "")
    write_budget(project, functions={"turn/gone": {"class": "pure"}, "turn/decide": {"class": "pure"}})
    assert main(["turn/decide"], project) == 1
    error = capsys.readouterr().err
    assert "functions/turn/new has no entry" in error
    assert "functions/turn/gone, which does not exist" in error
