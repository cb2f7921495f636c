"""The state machines of `statemachines/*.asl.yaml`, read as one walks them: scope by scope, state by state.

A scope is one `States` object: the machine itself, the inside of a Map, one branch of a Parallel. Names
follow the Amazon States Language (https://states-language.net/spec.html).
"""

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

SUFFIX = ".asl.yaml"
EXPRESSION = re.compile(r"\{%(.*)%\}", re.DOTALL)

State = dict[str, Any]


class MachineFileError(Exception):
    """Raised when a file is not YAML that describes one state machine."""


@dataclass(frozen=True)
class Scope:
    """One `States` object, the names of the states around it (outermost first) and the state it starts at."""

    around: tuple[str, ...]
    start_at: str
    states: dict[str, State]


@dataclass(frozen=True)
class Edge:
    """One way out of a state; `label` is the condition of a choice or the errors of a catch, else empty."""

    target: str
    kind: Literal["next", "choice", "default", "catch"]
    label: str


class _StrictLoader(yaml.SafeLoader):
    """Refuses repeated keys: plain YAML silently keeps the last state of a name."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        repeated = {str(key) for key in keys if keys.count(key) > 1}
        if repeated:
            raise MachineFileError(f"line {node.start_mark.line + 1}: {', '.join(sorted(repeated))} twice")
        return super().construct_mapping(node, deep)


def machine_files(root: Path) -> list[Path]:
    """The machines of the repository, by name."""
    return sorted((root / "statemachines").glob(f"*{SUFFIX}"))


def machine_name(path: Path) -> str:
    """`turn` for `statemachines/turn.asl.yaml`."""
    return path.name.removesuffix(SUFFIX)


def read_machine(path: Path) -> State:
    """Parse one file; raise MachineFileError when it is not a mapping, or repeats a key."""
    try:
        machine = yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)  # noqa: S506 (a SafeLoader)
    except (yaml.YAMLError, MachineFileError) as error:
        raise MachineFileError(f"{path.name}: {error}") from error
    if not isinstance(machine, dict):
        raise MachineFileError(f"{path.name}: not a state machine")
    return machine


def scopes(machine: State, around: tuple[str, ...] = ()) -> Iterator[Scope]:
    """The machine's own scope first, then what its states contain, depth first."""
    states: dict[str, State] = machine.get("States") or {}
    yield Scope(around, str(machine.get("StartAt", "")), states)
    for name, state in states.items():
        for label, inner in inner_machines(name, state):
            yield from scopes(inner, (*around, label))


def inner_machines(name: str, state: State) -> list[tuple[str, State]]:
    """What a Map or Parallel runs, under the name its scope gets: `AnswerParts`, or `Both 1` and `Both 2`."""
    if state.get("Type") == "Map":
        return [(name, state.get("ItemProcessor") or {})]
    branches = state.get("Branches") or []
    return [(f"{name} {number}", branch) for number, branch in enumerate(branches, start=1)]


def edges(state: State) -> list[Edge]:
    """The ways out of a state, in the order they are tried."""
    found = [Edge(str(rule.get("Next")), "choice", rule_text(rule)) for rule in state.get("Choices") or []]
    if "Default" in state:
        found.append(Edge(str(state["Default"]), "default", ""))
    if "Next" in state:
        found.append(Edge(str(state["Next"]), "next", ""))
    for catch in state.get("Catch") or []:
        found.append(Edge(str(catch.get("Next")), "catch", ", ".join(catch.get("ErrorEquals") or [])))
    return found


def ends(state: State) -> bool:
    """Whether the scope is over after this state."""
    return bool(state.get("End")) or state.get("Type") in ("Succeed", "Fail")


def rule_text(rule: State) -> str:
    """The condition of a choice rule without its JSONata brackets, on one line."""
    condition = str(rule.get("Condition", ""))
    match = EXPRESSION.fullmatch(condition.strip())
    return " ".join((match.group(1) if match else condition).split())


def strings(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Every string below a value, with its place (`States.Govern.Arguments.Payload`)."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from strings(inner, f"{place}[{index}]")
