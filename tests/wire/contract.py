"""contracts/ as validators."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator, Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

CONTRACTS = Path(__file__).resolve().parents[2] / "contracts"
SCHEMAS = CONTRACTS / "schemas"
_BASE = "file:///contracts/"


@cache
def registry() -> Registry[Any]:
    """Every schema file under the address that relative references lead to."""
    files = [(path, read_json(path)) for path in SCHEMAS.rglob("*.json")]
    return Registry().with_resources(
        (f"{_BASE}{path.relative_to(CONTRACTS).as_posix()}", Resource(contents, DRAFT7))
        for path, contents in files
    )


def validator(path: str) -> Draft7Validator:
    """For one schema file, named from contracts/ (`schemas/server/pong.json`)."""
    return Draft7Validator({"$ref": f"{_BASE}{path}"}, registry=registry())


def inline_validator(schema: dict[str, Any]) -> Draft202012Validator:
    """For a schema that stands in openapi.yaml, whose references are relative to contracts/."""
    return Draft202012Validator({"$id": f"{_BASE}openapi.yaml", **schema}, registry=registry())


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_yaml(name: str) -> Any:
    return yaml.safe_load((CONTRACTS / name).read_text(encoding="utf-8"))


def types_of(side: str) -> set[str]:
    """`client` or `server`."""
    return {path.stem for path in (SCHEMAS / side).glob("*.json")}


def mistakes(frame: dict[str, Any]) -> list[str]:
    """What is wrong with a frame that the server sent; an undocumented type is wrong."""
    kind = frame.get("type")
    if kind not in types_of("server"):
        return [f"{kind} is not in the contract"]
    checked = validator(f"schemas/server/{kind}.json")
    return [f"{kind}: {error.json_path} {error.message}" for error in checked.iter_errors(frame)]
