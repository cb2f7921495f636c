"""The emulator's DynamoDB for the contract suites: one process and one table a session."""

from __future__ import annotations

import pytest

from tests.protocol.emulated_table import create_table, dynamodb_client, running_emulator

TABLE = "contract"


@pytest.fixture(scope="session")
def emulator(tmp_path_factory):
    with running_emulator(tmp_path_factory.mktemp("emulator") / "emulator.log") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def dynamodb(emulator):
    """A client of a table named `TABLE`."""
    client = dynamodb_client(emulator)
    create_table(client, TABLE)
    yield client
    client.close()
