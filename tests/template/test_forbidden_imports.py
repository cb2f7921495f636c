"""No function imports what belongs to another: each handler is imported by a fresh interpreter and looked at."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.import_budget import imported_modules, named_among
from tools.import_rules import ImportRules, function_names, read_import_rules

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def rules() -> ImportRules:
    return read_import_rules(ROOT)


@pytest.fixture(scope="module")
def modules_of_functions(rules: ImportRules) -> dict[str, set[str]]:
    names = function_names(ROOT)
    if not names:
        pytest.fail("functions/ holds no <group>/<name>/handler.py: there is nothing to check")
    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(
            zip(names, pool.map(lambda name: imported_modules(name, rules, ROOT), names), strict=True)
        )


def test_every_function_has_a_budget_and_every_budget_a_function(rules: ImportRules) -> None:
    assert list(rules.problems(ROOT)) == []


def test_no_function_imports_what_it_must_not(
    rules: ImportRules, modules_of_functions: dict[str, set[str]]
) -> None:
    found = {
        name: named_among(rules.functions[name].forbidden, modules)
        for name, modules in modules_of_functions.items()
        if name in rules.functions
    }
    assert {name: modules for name, modules in found.items() if modules} == {}


def test_handlers_are_looked_at_after_they_built_their_clients(
    modules_of_functions: dict[str, set[str]],
) -> None:
    assert "turngate.adapters.openai_chat" in modules_of_functions["turn/model"]
    assert "botocore" in modules_of_functions["turn/commit_turn"]


def test_governance_is_forbidden_network_model_and_adapters(rules: ImportRules) -> None:
    never = {"boto3", "botocore", "urllib3", "openai", "mcp", "turngate.adapters"}
    assert never <= rules.functions["turn/govern"].forbidden


def test_models_and_vectors_stay_where_they_are_used(rules: ImportRules) -> None:
    for name, budget in rules.functions.items():
        assert "mcp" in budget.forbidden
        assert "openai" in budget.forbidden
        assert ("numpy" in budget.forbidden) == (name != "turn/retrieve")
