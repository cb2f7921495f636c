"""The data in the layer is what botocore's gives, and holds every operation that an adapter calls."""

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name

from tools.aws_data import DATA, OPERATIONS, ROOT, files, main, trimmed

ADAPTERS = ROOT / "layers" / "turngate" / "turngate" / "adapters"
SERVICES = {
    "apigateway.py": "apigatewaymanagementapi",
    "dynamodb/store.py": "dynamodb",
    "s3.py": "s3",
    "sqs.py": "sqs",
    "stepfunctions.py": "stepfunctions",
}
"""The adapters that hold a botocore client, and the service behind it."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / DATA, tmp_path / DATA)
    return tmp_path


def called_on_client(path: Path) -> set[str]:
    """Attributes read from a client, which adapters call `self._client` or `client`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="_client") | ast.Name(id="client"), attr=name):
                found.add(name)
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Attribute(attr="_client"), *_]):
                pytest.fail(f"{path.name}:{node.lineno} hides which operation it calls")
    return found


def imported(path: Path) -> set[str]:
    """Modules that this file imports from, whatever the names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize(("adapter", "service"), SERVICES.items())
def test_the_list_is_what_the_adapter_calls(adapter: str, service: str) -> None:
    assert called_on_client(ADAPTERS / adapter) == {xform_name(name) for name in OPERATIONS[service]}


def test_no_other_adapter_holds_a_botocore_client() -> None:
    users = {
        path.relative_to(ADAPTERS).as_posix()
        for path in ADAPTERS.rglob("*.py")
        if any(name.startswith(("botocore", "turngate.adapters.aws")) for name in imported(path))
    }
    assert users == {*SERVICES, "aws.py"}
    assert set(SERVICES.values()) == set(OPERATIONS)


def test_what_is_in_the_tree_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_the_data_stays_small() -> None:
    assert sum(path.stat().st_size for path in (ROOT / DATA).rglob("*") if path.is_file()) < 150_000


def test_writing_twice_gives_the_same_bytes(tmp_path: Path, project: Path) -> None:
    (project / DATA / "left-over.json").write_text("{}")
    assert main([], root=project) == 0
    assert main(["--check"], root=project) == 0
    assert files() == files()


def test_stale_missing_and_unknown_files_are_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / DATA / "endpoints.json").unlink()
    (project / DATA / "sqs" / "2012-11-05" / "service-2.json").write_text("{}")
    (project / DATA / "ec2.json").write_text("{}")
    assert main(["--check"], root=project) == 1
    said = capsys.readouterr().err
    assert "ec2.json, endpoints.json, sqs/2012-11-05/service-2.json" in said
    assert "Run `python -m tools.aws_data`" in said


def test_data_of_another_botocore_is_said_to_be_that(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], root=project, version="9.9.9") == 1
    said = capsys.readouterr().err
    assert "botocore 9.9.9" in said
    assert "requirements/dev.txt" in said
    assert "make setup" in said


def test_an_operation_that_the_service_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match="Scan"):
        trimmed({"operations": {}, "shapes": {}}, {"Scan"})


def test_texts_go_and_what_is_only_named_documentation_stays() -> None:
    model: dict[str, Any] = {
        "documentation": "of the service",
        "clientContextParams": {"Fast": {"documentation": "botocore reads this one"}},
        "operations": {"Ask": {"input": {"shape": "Question"}, "documentation": "of the operation"}},
        "shapes": {
            "Question": {"members": {"documentation": {"shape": "Text", "documentation": "of the member"}}},
            "Text": {"type": "string"},
            "Answer": {"type": "string"},
            "Refused": {"exception": True, "members": {"why": {"shape": "Reason"}}},
            "Reason": {"type": "string"},
        },
    }
    assert trimmed(model, {"Ask"}) == {
        "clientContextParams": {"Fast": {"documentation": "botocore reads this one"}},
        "operations": {"Ask": {"input": {"shape": "Question"}}},
        "shapes": {
            "Question": {"members": {"documentation": {"shape": "Text"}}},
            "Text": {"type": "string"},
            "Refused": {"exception": True, "members": {"why": {"shape": "Reason"}}},
            "Reason": {"type": "string"},
        },
    }
