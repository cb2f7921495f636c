"""What INIT leaves behind, in a fresh interpreter as Lambda starts one."""

from pathlib import Path

import pytest

from tools.import_budget import cpu_of
from tools.import_rules import function_names, read_import_rules

ROOT = Path(__file__).resolve().parents[2]
COLLECTOR_AT_WORK = """
import gc, handler
assert gc.isenabled()
assert gc.get_freeze_count() or not hasattr(handler, "ports")
"""
FAILED_INIT = """
import gc, pytest
from turngate import wiring
assert not gc.isenabled()
with pytest.raises(AttributeError):
    wiring.live("no_such_port")
assert gc.isenabled()
"""


@pytest.mark.parametrize("name", function_names(ROOT))
def test_the_collector_is_at_work_once_a_handler_is_imported(name: str) -> None:
    assert cpu_of(COLLECTOR_AT_WORK, ROOT / "functions" / name, read_import_rules(ROOT), ROOT)


def test_the_collector_is_at_work_after_an_init_that_failed() -> None:
    assert cpu_of(FAILED_INIT, ROOT, read_import_rules(ROOT), ROOT)
