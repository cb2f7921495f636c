"""Each fidelity patch shows AWS's behaviour, and the stock emulator without it shows the gap."""

import random

import pytest

from local.emulator.patches import PATCHES, PatchContext, UnknownPatchError, apply_patches
from local.emulator.patches.execution_states import retry_delay
from local.emulator.settings import EmulatorSettings
from tests.emulator.contracts import CONTRACTS

by_question = pytest.mark.parametrize("contract", CONTRACTS, ids=lambda c: f"{c.patch}:{c.question}")


@by_question
def test_the_patched_emulator_behaves_like_aws(patched, contract):
    assert contract.observe(patched) == contract.aws


@by_question
def test_the_gap_shows_without_the_patch(stock, contract):
    assert contract.observe(stock) == contract.stock
    assert contract.aws != contract.stock


def test_every_patch_has_a_contract_and_a_reason():
    assert {patch.name for patch in PATCHES} == {contract.patch for contract in CONTRACTS}
    assert all("AWS" in patch.reason or "Stock" in patch.reason for patch in PATCHES)


def test_patch_names_are_unique():
    assert len({patch.name for patch in PATCHES}) == len(PATCHES)


def test_leaving_out_an_unknown_patch_is_refused():
    with pytest.raises(UnknownPatchError, match="no patch named tabel-ttl"):
        apply_patches(PatchContext(EmulatorSettings(), None), ["tabel-ttl"])


def test_retries_double_their_delay_up_to_the_maximum():
    retrier = {"IntervalSeconds": 1, "BackoffRate": 2.0, "MaxDelaySeconds": 5}
    delays = [retry_delay(retrier, attempts, random.Random(1)) for attempts in range(4)]
    assert delays == [1, 2, 4, 5]


def test_full_jitter_spreads_a_delay_between_zero_and_its_whole():
    retrier = {"IntervalSeconds": 8, "BackoffRate": 1.0, "JitterStrategy": "FULL"}
    spread = random.Random(1)
    delays = [retry_delay(retrier, 0, spread) for _ in range(200)]
    assert all(0 <= delay <= 8 for delay in delays)
    assert min(delays) < 2
    assert max(delays) > 6
