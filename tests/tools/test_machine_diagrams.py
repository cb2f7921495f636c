"""The pages of the machines say what the ASL says, and a page that does not is found."""

import shutil
from pathlib import Path

import pytest

from tools.asl import MachineFileError, read_machine
from tools.machine_diagrams import diagram, main, page

FIXTURE = Path(__file__).parent / "machines"
ORDER = FIXTURE / "statemachines" / "order.asl.yaml"
PAGE = Path("docs", "machines", "order.md")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURE, tmp_path, dirs_exist_ok=True)
    return tmp_path


def drawn() -> list[str]:
    return diagram(read_machine(ORDER))


def table_row(name: str) -> list[str]:
    (line,) = [line for line in page(ORDER).splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")]


@pytest.mark.covers("F-009")
def test_the_diagram_has_every_way_of_the_machine_and_no_other() -> None:
    assert [line.strip() for line in drawn() if "-->" in line] == [
        "[*] --> ReadOrder",
        "ReadOrder --> HasItems",
        "ReadOrder --> FailOrder: ⚠ States.ALL",
        "HasItems --> CheckItems: kind = 'items' and $count(items) > 0",
        "HasItems --> Announce: kind = 'a very long condition that nobody could…",
        "HasItems --> Empty: otherwise",
        "[*] --> CheckItem",
        "CheckItem --> ItemFailed: ⚠ States.ALL",
        "CheckItem --> [*]",
        "ItemFailed --> [*]",
        "CheckItems --> Announce",
        "CheckItems --> FailOrder: ⚠ States.ALL",
        "Announce --> Done",
        "Announce --> FailOrder: ⚠ States.ALL",
        "FailOrder --> Failed",
        "Empty --> [*]",
        "Done --> [*]",
        "Failed --> [*]",
    ]


def test_the_inside_of_a_map_is_a_composite_state() -> None:
    lines = drawn()
    start, end = lines.index("    state CheckItems {"), lines.index("    }")
    assert lines[start + 1] == "        [*] --> CheckItem"
    assert all("Item" in line for line in lines[start:end])


def test_branches_of_a_parallel_are_parted_by_a_line() -> None:
    branch = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    other = {"StartAt": "B", "States": {"B": {"Type": "Pass", "End": True}}}
    both = {"Type": "Parallel", "Branches": [branch, other], "End": True}
    lines = [line.strip() for line in diagram({"StartAt": "Both", "States": {"Both": both}})]
    assert lines[2:9] == ["state Both {", "[*] --> A", "A --> [*]", "--", "[*] --> B", "B --> [*]", "}"]


def test_states_reached_by_an_error_are_dashed() -> None:
    assert drawn()[-1].strip() == "class FailOrder,ItemFailed onError"


def test_labels_hold_nothing_that_ends_them_early() -> None:
    rule = {"Condition": "{% $states.input.a ? 'b:c;#d' %}", "Next": "Done"}
    states = {"Ask": {"Type": "Choice", "Choices": [rule], "Default": "Done"}, "Done": {"Type": "Succeed"}}
    (line,) = [line for line in diagram({"StartAt": "Ask", "States": states}) if "?" in line]
    assert line.strip() == "Ask --> Done: a ? 'b∶c,♯d'"


def test_the_table_says_who_is_called_how_long_and_what_happens_on_an_error() -> None:
    assert table_row("ReadOrder") == [
        "ReadOrder",
        "Task",
        "Asks first \N{BROKEN BAR} then decides.",
        "ReadOrderFunction",
        "10 s",
        "TransientError, Lambda.TooManyRequestsException: 3 more, from 1 s × 2.0, jitter",
        "States.ALL → FailOrder",
        "HasItems",
    ]
    assert table_row("CheckItems / CheckItem")[3:5] == ["CheckItemFunction", "`$states.input.seconds` s"]
    assert table_row("Announce")[3] == "sqs:sendMessage"
    assert table_row("HasItems")[-1].endswith("; otherwise → Empty")
    assert table_row("Failed")[-1] == "ends"


def test_check_fails_until_the_page_is_written_and_again_after_a_change(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], project) == 1
    assert not (project / PAGE).exists()
    assert main([], project) == 0
    assert main(["--check"], project) == 0
    machine = project / "statemachines" / "order.asl.yaml"
    machine.write_text(
        machine.read_text(encoding="utf-8").replace("Default: Empty", "Default: Done"), "utf-8"
    )
    capsys.readouterr()
    assert main(["--check"], project) == 1
    assert f"{PAGE.as_posix()} is stale" in capsys.readouterr().err


def test_a_page_without_its_machine_is_stale_and_removed(project: Path) -> None:
    assert main([], project) == 0
    (project / "statemachines" / "order.asl.yaml").unlink()
    assert main(["--check"], project) == 1
    assert main([], project) == 0
    assert not (project / PAGE).exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("States:\n  A: {Type: Pass}\n  A: {Type: Succeed}\n", "A twice"),
        ("- not\n- a machine\n", "not a state machine"),
        ("States: [", "bad.asl.yaml"),
    ],
)
def test_a_file_that_is_no_machine_is_refused_with_its_name(
    project: Path, text: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "statemachines" / "bad.asl.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MachineFileError, match=problem):
        read_machine(path)
    assert main(["--check"], project) == 1
    assert "bad.asl.yaml" in capsys.readouterr().err
