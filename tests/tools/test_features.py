"""`make features` counts what tests really claim, and refuses claims that would only look like coverage."""

import shutil
from pathlib import Path

import pytest

from tools import features
from tools.feature_list import COLUMNS, FeatureListError, read_features
from tools.marks import read_marks

ROOT = Path(__file__).resolve().parents[2]
HEADER = ",".join(COLUMNS)
ROWS = (
    "F-001,A,Entry,behaviour,S0,first,Does one.,",
    "F-002,A,Entry,rule,S0,second,Does two.,",
    "F-003,A,Entry,limit the seed admits,S0,third,Cannot.,Not carried over.",
    "F-004,B,Resume,rule,S1,fourth,Does four.,",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    write_rows(tmp_path, ROWS)
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    return tmp_path


def write_rows(project: Path, rows: tuple[str, ...]) -> None:
    (project / "docs" / "features.csv").write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")


def write_test(project: Path, source: str, folder: str = "unit", name: str = "test_it.py") -> None:
    path = project / "tests" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"import pytest\n{source}\n", encoding="utf-8")


def claims(project: Path, kind: str = "covers") -> set[tuple[str, str]]:
    found = read_marks(project / "tests")
    assert found.problems == []
    return {(mark.name, mark.test.rpartition("::")[2]) for mark in found.marks if mark.kind == kind}


def row(report: str, start: str) -> list[str]:
    (line,) = [line for line in report.splitlines() if line.startswith(start)]
    return line.split()


def test_inventory_has_every_number_once_and_sets_the_seeds_limits_apart() -> None:
    items = read_features(ROOT / "docs" / "features.csv")
    assert [item.number for item in items] == [f"F-{n:03}" for n in range(1, 686)]
    assert len({item.group for item in items}) == 27
    assert all(item.apart for item in items if item.kind == "limit the seed admits")
    assert sum(not item.counted for item in items) == 29


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            '@pytest.mark.covers("F-001", "F-002")\ndef test_a(): ...',
            {("F-001", "test_a"), ("F-002", "test_a")},
        ),
        ('@pytest.mark.covers("F-001")\nasync def test_a(): ...', {("F-001", "test_a")}),
        (
            'pytestmark = pytest.mark.covers("F-001")\ndef test_a(): ...\ndef test_b(): ...',
            {("F-001", "test_a"), ("F-001", "test_b")},
        ),
        ('pytestmark = [pytest.mark.covers("F-001")]\ndef test_a(): ...', {("F-001", "test_a")}),
        ('@pytest.mark.covers("F-001")\nclass TestA:\n    def test_a(self): ...', {("F-001", "test_a")}),
        (
            'class TestA:\n    pytestmark = pytest.mark.covers("F-002")\n    def test_a(self): ...',
            {("F-002", "test_a")},
        ),
        (
            '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.covers("F-004"))])\n'
            "def test_a(x): ...",
            {("F-004", "test_a")},
        ),
        (
            'CASES = [pytest.param(1, marks=[pytest.mark.covers("F-004")])]\n'
            '@pytest.mark.parametrize("x", CASES)\ndef test_a(x): ...',
            {("F-004", "test_a")},
        ),
        ('routed = pytest.mark.covers("F-004")\n@routed\ndef test_a(): ...', {("F-004", "test_a")}),
        ('TestStore = pytest.mark.covers("F-001")(Machine.TestCase)', {("F-001", "TestStore")}),
        ('@pytest.mark.skip(reason="not here")\n@pytest.mark.covers("F-001")\ndef test_a(): ...', set()),
        ('@pytest.mark.xfail\n@pytest.mark.covers("F-001")\ndef test_a(): ...', set()),
        (
            '@pytest.mark.skipif(True, reason="needs x")\n@pytest.mark.covers("F-001")\ndef test_a(): ...',
            {("F-001", "test_a")},
        ),
        ("TEXT = '@pytest.mark.covers(\"F-001\")'\ndef test_a(): ...", set()),
    ],
)
def test_marks_are_read_wherever_pytest_allows_them(
    project: Path, source: str, expected: set[tuple[str, str]]
) -> None:
    write_test(project, source)
    assert claims(project) == expected


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ('@pytest.mark.covers("F-001")\ndef helper(): ...', "belongs to no test"),
        ('@pytest.mark.covers(f"F-{1:03}")\ndef test_a(): ...', "not a plain string"),
        ("@pytest.mark.covers()\ndef test_a(): ...", "names nothing"),
        ('@pytest.mark.covers("F-999")\ndef test_a(): ...', "F-999, which does not exist"),
        ('@pytest.mark.invariant("I21")\ndef test_a(): ...', "I21, which does not exist"),
    ],
)
def test_marks_that_prove_nothing_are_errors(
    project: Path, source: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_test(project, source)
    assert features.main(["--check"], project) == 1
    output = capsys.readouterr()
    assert problem in output.err
    assert "tests/unit/test_it.py" in output.err
    assert output.out == ""


def test_summary_counts_each_item_once_and_names_the_layers_that_show_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_test(project, '@pytest.mark.covers("F-001")\ndef test_a(): ...\n' * 2)
    write_test(project, '@pytest.mark.covers("F-001", "F-003")\ndef test_a(): ...', folder="machines")
    write_test(project, '@pytest.mark.covers("F-002")\ndef test_a(): ...', folder="browser")
    write_test(project, '@pytest.mark.invariant("I2")\ndef test_a(): ...', folder="contract")
    assert features.main([], project) == 0
    report = capsys.readouterr().out
    assert row(report, "group") == ["group", "covered", "domain", "machine", "stack", "contract"]
    assert row(report, "A ") == ["A", "Entry", "2/2", "1", "1", "1"]
    assert row(report, "B ") == ["B", "Resume", "0/1"]
    assert row(report, "total") == ["total", "2/3", "1", "1", "1"]
    assert "1 items are counted apart, each with its reason; 1 of them have a test." in report
    assert row(report, "I2 ") == ["I2", "1", "1"]
    assert row(report, "I1 ") == ["I1", "-"]


def test_group_lists_each_item_with_its_tests_or_a_dash(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_test(project, '@pytest.mark.covers("F-001")\ndef test_a(): ...')
    assert features.main(["--group", "A"], project) == 0
    assert capsys.readouterr().out.splitlines() == [
        "F-001  first: Does one.",
        "       domain    tests/unit/test_it.py::test_a",
        "F-002  second: Does two.",
        "       -",
        "F-003  third: Cannot.",
        "       apart: Not carried over.",
        "       -",
    ]


def test_unknown_group_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert features.main(["--group", "H"], project) == 1
    assert "there are A B" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ("F-001,A,Entry,rule,S0,again,Once more.,", "F-001 appears twice"),
        ("F-5,A,Entry,rule,S0,short,Number.,", "'F-5' is not a feature number"),
        ("F-005,A,Other,rule,S0,name,Group.,", "group A has two names"),
        ("F-005,A,Entry,rule,S0,,Empty.,", "F-005 has an empty column"),
        ("F-005,A,Entry", "3 columns, not 8"),
    ],
)
def test_bad_rows_of_the_inventory_are_errors(
    project: Path, extra: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(project, (*ROWS, extra))
    assert features.main(["--check"], project) == 1
    assert problem in capsys.readouterr().err


def test_inventory_with_other_columns_is_refused(project: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", project / "docs" / "features.csv")
    with pytest.raises(FeatureListError, match="columns are"):
        read_features(project / "docs" / "features.csv")


def test_the_marks_of_this_repository_are_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert features.main(["--check"]) == 0, capsys.readouterr().err
