"""Which test claims to show a feature or to defend an invariant, read from the source without running it.

A mark counts for a test when it stands on the function, on its class, in a `pytestmark` of the class or
module, or on a `pytest.param` of its parametrization; names that the module assigns are followed. A test that
is always skipped, or expected to fail, shows nothing. A mark of no test, or one whose argument is not
a plain string, is a problem: it would look like coverage and be none.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LAYER_OF_FOLDER = {"unit": "domain", "machines": "machine", "stack": "stack", "browser": "stack"}
KINDS = ("covers", "invariant")
SHOWS_NOTHING = ("skip", "xfail")


@dataclass(frozen=True)
class Mark:
    """One claim: the test (`tests/unit/test_x.py::TestA::test_b`) names one F- or I-number."""

    kind: str
    name: str
    test: str
    layer: str


@dataclass
class MarksOfTests:
    """All claims found, and what could not be read as one."""

    marks: list[Mark] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def tests_by_name(self, kind: str) -> dict[str, list[Mark]]:
        """The claims of one kind, gathered under the number they name."""
        found: dict[str, list[Mark]] = {}
        for mark in self.marks:
            if mark.kind == kind:
                found.setdefault(mark.name, []).append(mark)
        return found


def layer_of(path: Path, tests: Path) -> str:
    """The layer a test file belongs to: its first folder below `tests`, under the name the report uses."""
    parts = path.relative_to(tests).parts
    folder = parts[0] if len(parts) > 1 else "other"
    return LAYER_OF_FOLDER.get(folder, folder)


def read_marks(tests: Path) -> MarksOfTests:
    """Read every `test_*.py` and `*_test.py` below `tests`."""
    found = MarksOfTests()
    files = sorted({*tests.rglob("test_*.py"), *tests.rglob("*_test.py")})
    for path in files:
        name = f"{tests.name}/{path.relative_to(tests).as_posix()}"
        _FileReader(found, name, layer_of(path, tests)).read(path.read_text(encoding="utf-8"))
    return found


class _FileReader:
    def __init__(self, found: MarksOfTests, name: str, layer: str) -> None:
        self.found = found
        self.name = name
        self.layer = layer
        self.assigned: dict[str, ast.expr] = {}
        self.used: set[ast.Call] = set()

    def read(self, source: str) -> None:
        tree = ast.parse(source, self.name)
        self.assigned = dict(_assignments(tree.body))
        self._body(tree.body, [], self.name)
        for call in _mark_calls(tree):
            if call not in self.used:
                self.found.problems.append(f"{self.name}:{call.lineno}: this mark belongs to no test")

    def _body(self, body: list[ast.stmt], inherited: list[ast.expr], prefix: str) -> None:
        assigned = dict(_assignments(body))
        own = [*inherited, *([assigned["pytestmark"]] if "pytestmark" in assigned else [])]
        for name, value in assigned.items():
            if name.startswith("Test"):  # hypothesis: TestStore = StoreMachine.TestCase
                self._test(f"{prefix}::{name}", [*own, value])
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                self._body(node.body, [*own, *node.decorator_list], f"{prefix}::{node.name}")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                self._test(f"{prefix}::{node.name}", [*own, *node.decorator_list])

    def _test(self, test: str, sources: list[ast.expr]) -> None:
        nodes = list(self._reachable(sources))
        calls = [node for node in nodes if isinstance(node, ast.Call) and _mark_kind(node) in KINDS]
        self.used.update(calls)
        # a `skip` on one parameter leaves the others, so only marks on the whole test silence it
        if any(_mark_kind(source) in SHOWS_NOTHING for source in self._whole_test(sources)):
            return
        claims = {(_mark_kind(call), name) for call in calls for name in self._names(call)}
        self.found.marks += [Mark(kind, name, test, self.layer) for kind, name in sorted(claims)]

    def _names(self, call: ast.Call) -> list[str]:
        names = []
        for argument in call.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                names.append(argument.value)
            else:
                self._complain(call, f"{ast.unparse(argument)} is not a plain string")
        if not call.args:
            self._complain(call, "this mark names nothing")
        return names

    def _complain(self, call: ast.Call, problem: str) -> None:
        text = f"{self.name}:{call.lineno}: {problem}"
        if text not in self.found.problems:
            self.found.problems.append(text)

    def _reachable(self, sources: list[ast.expr]) -> Iterator[ast.AST]:
        """Every node of the sources, following names the module assigns, each name once."""
        seen: set[str] = set()
        waiting: list[ast.AST] = list(sources)
        while waiting:
            for node in ast.walk(waiting.pop()):
                yield node
                if isinstance(node, ast.Name) and node.id in self.assigned and node.id not in seen:
                    seen.add(node.id)
                    waiting.append(self.assigned[node.id])

    def _whole_test(self, sources: list[ast.expr]) -> Iterator[ast.expr]:
        for source in sources:
            node = self.assigned.get(source.id, source) if isinstance(source, ast.Name) else source
            yield from node.elts if isinstance(node, ast.List | ast.Tuple) else [node]


def _assignments(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _mark_calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _mark_kind(node) in KINDS]


def _mark_kind(node: ast.expr) -> str:
    """`covers` for `pytest.mark.covers(...)`, `skip` also for the bare mark; empty for anything else."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute) and ast.unparse(target.value) in ("pytest.mark", "mark"):
        return target.attr
    return ""
