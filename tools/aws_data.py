"""botocore's data cut to what the adapters call: a cold start parses 60 KB instead of 2 MB.

    python -m tools.aws_data          write layers/turngate/turngate/adapters/aws_data
    python -m tools.aws_data --check  exit 1 when it is not what the installed botocore gives

`OPERATIONS` is the list: an operation that an adapter calls and that is not here does not exist on its client
(tests/tools/test_aws_data.py compares the two). The source is the botocore of `.venv`, because every test runs on
it; `make check` fails when its pin moves until the data is written anew. Endpoint rule sets and partitions are left
to the botocore that runs: its code evaluates them, so they must be of its own version.
"""

import argparse
import gzip
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import botocore

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("layers", "turngate", "turngate", "adapters", "aws_data")
BOTOCORE = Path(botocore.__file__).parent / "data"

OPERATIONS: Mapping[str, frozenset[str]] = {
    "apigatewaymanagementapi": frozenset({"PostToConnection"}),
    "dynamodb": frozenset(
        {
            "BatchGetItem",
            "BatchWriteItem",
            "DeleteItem",
            "GetItem",
            "PutItem",
            "Query",
            "TransactWriteItems",
            "UpdateItem",
        }
    ),
    "s3": frozenset({"GetObject", "PutObject"}),
    "sqs": frozenset({"SendMessage"}),
    "stepfunctions": frozenset({"StartExecution"}),
}
"""What the adapters may call, by botocore's name of the service."""

_NOTICE = """\
Derived from botocore {version} (https://github.com/boto/botocore), its data for the operations that Turngate calls,
without documentation. Copyright Amazon.com, Inc. or its affiliates, licensed under the Apache License 2.0.
Written by `python -m tools.aws_data`; not to be edited.
"""


def main(argv: Sequence[str], root: Path = ROOT, version: str = botocore.__version__) -> int:
    """Write or check the directory; return the exit code."""
    parser = argparse.ArgumentParser(prog="aws_data", description="the part of botocore's data that we use")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the data is stale")
    options = parser.parse_args(argv)
    folder, wanted = root / DATA, files(version)
    if options.check:
        stale = differences(folder, wanted)
        if stale:
            print(
                f"{DATA}: {', '.join(stale)} differ from botocore {version}, which this Python has.",
                file=sys.stderr,
            )
            print(_what_to_do(folder, version), file=sys.stderr)
        return 1 if stale else 0
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"wrote {DATA}: {len(wanted)} files, {sum(map(len, wanted.values())):,} bytes")
    return 0


def files(version: str = botocore.__version__) -> dict[str, str]:
    """Path below the data directory and text of each file, in botocore's own layout."""
    made: dict[str, str] = {"NOTICE": _NOTICE.format(version=version)}
    prefixes = set()
    for service, operations in OPERATIONS.items():
        source = _model_file(service)
        model = trimmed(_read(source), operations)
        prefixes.add(model["metadata"]["endpointPrefix"])
        made[f"{service}/{source.parent.name}/service-2.json"] = _compact(model)
    made["endpoints.json"] = _compact(_endpoints_of(prefixes))
    return made


def trimmed(model: Mapping[str, Any], operations: Iterable[str]) -> dict[str, Any]:
    """A service model with these operations alone, the shapes they reach, and every error of the service: botocore
    looks errors up by code, whatever the operation. KeyError for an operation that the service does not have."""
    kept = {name: model["operations"][name] for name in sorted(operations)}
    shapes = model["shapes"]
    waiting = [name for name, shape in shapes.items() if shape.get("exception")]
    for operation in kept.values():
        used = [operation.get("input"), operation.get("output"), *operation.get("errors", ())]
        waiting += [each["shape"] for each in used if each]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _shapes_of(shapes[name])
    return {
        **{
            key: each for key, each in model.items() if key != "documentation"
        },  # botocore reads texts in the rest
        "operations": without_documentation(kept),
        "shapes": without_documentation({name: shapes[name] for name in shapes if name in reached}),
    }


def without_documentation(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The same JSON without its texts. A member that is *named* documentation is an object, and stays."""
    if isinstance(value, dict):
        return {
            key: without_documentation(each)
            for key, each in value.items()
            if not (key == "documentation" and isinstance(each, str))
        }
    return [without_documentation(each) for each in value] if isinstance(value, list) else value


def differences(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """Files that are stale, missing, or too many."""
    found = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }
    return sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))


def _what_to_do(folder: Path, version: str) -> str:
    notice = folder / "NOTICE"
    if notice.is_file() and notice.read_text(encoding="utf-8") != _NOTICE.format(version=version):
        return (
            "It was made from another botocore (see its NOTICE). If requirements/dev.txt asks for this one, run "
            "`python -m tools.aws_data` and commit; if not, the venv is stale: `make setup`."
        )
    return "Run `python -m tools.aws_data` and commit."


def _endpoints_of(prefixes: Iterable[str]) -> dict[str, Any]:
    """Every partition and region, of our services alone."""
    kept = frozenset(prefixes)
    endpoints = _read(BOTOCORE / "endpoints.json")
    return {
        **endpoints,
        "partitions": [
            {
                **partition,
                "services": {name: each for name, each in partition["services"].items() if name in kept},
            }
            for partition in endpoints["partitions"]
        ],
    }


def _shapes_of(shape: Mapping[str, Any]) -> list[str]:
    parts = [shape.get("member"), shape.get("key"), shape.get("value"), *shape.get("members", {}).values()]
    return [part["shape"] for part in parts if part]


def _model_file(service: str) -> Path:
    return max((BOTOCORE / service).glob("*/service-2.json*"))  # folders are dates: the latest


def _read(path: Path) -> dict[str, Any]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return dict(json.loads(data))


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
