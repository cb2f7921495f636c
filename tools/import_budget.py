"""What a cold start of each function costs to import, held against `bench/budget.json` (`imports`).

    python -m tools.import_budget             measure every function of functions/<group>/<name>/handler.py
    python -m tools.import_budget turn/model  only these

A handler is imported as Lambda imports it: a new interpreter, its own folder and the layer on the path, and no
environment but that of the budget. Handlers build their clients in INIT, so that is measured too, and so is what
they do about garbage collection. The figure is CPU time (user + system, all threads), as a ratio to `import boto3`
in the same interleaved run: milliseconds differ between machines and with their load, the ratio hardly does.
Exit 1 when a ratio is over its hold plus slack in each of the attempts, when a forbidden module was imported, or
when a function has no budget.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.import_rules import FunctionBudget, ImportRules, function_names, read_import_rules

ROOT = Path(__file__).resolve().parent.parent
LAYER = Path("layers", "turngate")


class ImportFailedError(Exception):
    """Raised when a fresh interpreter could not import a handler; the message is its traceback."""


@dataclass(frozen=True)
class Measured:
    """CPU seconds of one handler's import and of the baseline, medians of the same interleaved rounds."""

    cpu: float
    baseline: float

    @property
    def ratio(self) -> float:
        """How many times the baseline the import costs."""
        return self.cpu / self.baseline


def main(argv: Sequence[str], root: Path = ROOT) -> int:
    """Measure, print one line per function; return the exit code."""
    parser = argparse.ArgumentParser(prog="import_budget", description="import cost of the function handlers")
    parser.add_argument("functions", nargs="*", help="<group>/<name>; all when none is named")
    options = parser.parse_args(argv)
    rules = read_import_rules(root)
    names = options.functions or function_names(root)
    problems = [*rules.problems(root)]
    if not names:
        problems.append("functions/ holds no handler.py: there is nothing to measure")
    known = [name for name in names if name in rules.functions]
    try:
        measured = measure(known, rules, root)
        for name in known:
            budget = rules.functions[name]
            print(line(name, measured[name], budget))
            if measured[name].ratio > budget.hold * (1 + rules.slack):
                problems.append(f"{name}: {measured[name].ratio:.2f} x {rules.baseline}, hold {budget.hold}")
            problems += [f"{name} imports {module}" for module in forbidden_imports(name, rules, root)]
    except ImportFailedError as error:
        problems.append(str(error))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def line(name: str, measured: Measured, budget: FunctionBudget) -> str:
    """One line of the report: ratio, hold, stretch, class, and the CPU milliseconds for the curious."""
    return (
        f"{name:<26} {measured.ratio:5.2f}  hold {budget.hold:4.2f}  stretch {budget.stretch:4.2f}  "
        f"{budget.kind:<9} {measured.cpu * 1000:6.0f} ms CPU of {measured.baseline * 1000:.0f}"
    )


def measure(names: Sequence[str], rules: ImportRules, root: Path) -> dict[str, Measured]:
    """The best attempt of each function; only those over their hold are measured again."""
    best: dict[str, Measured] = {}
    waiting = list(names)
    for _ in range(rules.attempts):
        if not waiting:
            break
        for name, measured in _interleaved(waiting, rules, root).items():
            best[name] = min(best.get(name, measured), measured, key=lambda each: each.ratio)
        waiting = [name for name in waiting if best[name].ratio > rules.functions[name].hold]
    return best


def _interleaved(names: Sequence[str], rules: ImportRules, root: Path) -> dict[str, Measured]:
    baseline: list[float] = []
    spent: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rules.rounds + 1):
        base = cpu_of(rules.baseline, root / LAYER, rules, root)
        handlers = {name: cpu_of("import handler", root / "functions" / name, rules, root) for name in names}
        if number:  # the first round compiles what is new and warms the page cache
            baseline.append(base)
            for name, cpu in handlers.items():
                spent[name].append(cpu)
    median = statistics.median(baseline)
    return {name: Measured(statistics.median(cpus), median) for name, cpus in spent.items()}


def cpu_of(code: str, folder: Path, rules: ImportRules, root: Path) -> float:
    """CPU seconds (user + system) of a new interpreter that runs `code` in `folder`."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 (our own interpreter and code)
            _command(code),
            cwd=folder,
            env=_environment(rules, root),
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise ImportFailedError(f"{folder.relative_to(root)}: {errors.read().decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime


def imported_modules(name: str, rules: ImportRules, root: Path) -> set[str]:
    """`sys.modules` of a new interpreter after it imported this function's handler."""
    folder = root / "functions" / name
    code = "import handler, sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run(  # noqa: S603 (our own interpreter and code)
        _command(code), cwd=folder, env=_environment(rules, root), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ImportFailedError(f"functions/{name}: {done.stderr}")
    return set(done.stdout.split())


def forbidden_imports(name: str, rules: ImportRules, root: Path) -> list[str]:
    """The forbidden modules that this function's handler brought in, itself or by what it imports."""
    return named_among(rules.functions[name].forbidden, imported_modules(name, rules, root))


def named_among(forbidden: Iterable[str], modules: set[str]) -> list[str]:
    """Those of `forbidden` that are in `modules`, themselves or by a submodule."""
    return sorted(
        name for name in forbidden if any(each == name or each.startswith(f"{name}.") for each in modules)
    )


def _command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _environment(rules: ImportRules, root: Path) -> dict[str, str]:
    return {**rules.environment, "PYTHONPATH": str(root / LAYER)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
