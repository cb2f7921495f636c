"""What a cold start of each function imports is within `bench/budget.json` (BUDGETS: ratios to `import boto3`)."""

from __future__ import annotations

from tools.import_budget import ROOT, main
from tools.import_rules import function_names


def test_no_function_costs_more_to_import_than_its_budget_or_brings_what_it_must_not(capsys) -> None:
    code = main([])
    told = capsys.readouterr()
    assert code == 0, told.err
    assert [line.split()[0] for line in told.out.splitlines()] == function_names(ROOT)
