"""One deployed stack for all tests of this folder, with its functions warm."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from local.deploy import build, deploy
from local.stack import ROOT, run_stack
from tests.stack.model_double import ModelDouble, serving
from tests.stack.world import World, all_clients_closed, skip_without_setup

QUESTION = "How long do refunds take?"
ON_THE_PATH = ("AcceptMessage", "PushEvents", "BeginTurn", "Model", "Govern", "Retrieve", "CommitTurn")


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    """The world, and how long the stack took from an unbuilt call to a loaded tenant (seconds)."""
    skip_without_setup()
    double = ModelDouble()
    with serving(double) as url:
        began = time.monotonic()
        with run_stack(observe=True, work_dir=tmp_path_factory.mktemp("stack")) as stack:
            took = time.monotonic() - began
            double.target = stack.model.base_url
            _update(stack, url)
            world = World(stack, double)
            _warm(world)
            yield world, took


@pytest.fixture
def world(started):
    """The stack with nobody on the line, no faults and no model trouble."""
    found, _ = started
    found.stack.emulator.clear_faults()
    with all_clients_closed(found):
        yield found
    found.stack.emulator.clear_faults()


@pytest.fixture(scope="session")
def report(request):
    """Shows measured figures in the terminal, whatever is captured."""
    terminal = request.config.pluginmanager.get_plugin("terminalreporter")

    def show(text: str) -> None:
        terminal.ensure_newline()
        terminal.write_line(text)

    return show


@pytest.fixture
def memory():
    """Resident megabytes of the processes of a group, and of its leader's other children."""

    def measure(*roots: int) -> float:
        seen = {}
        for root in roots:
            process = psutil.Process(root)
            for each in (process, *process.children(recursive=True)):
                seen[each.pid] = each.memory_info().rss
        return sum(seen.values()) / 2**20

    return measure


def _update(stack, model_url) -> None:
    """An update of the running stack: only now is the pool known whose keys the authorizer needs."""
    parameters = {
        "ExecuteApiBaseUrl": f"{stack.emulator.endpoint}/_aws/execute-api",
        **stack.model.parameters,
        "ModelBaseUrl": model_url,
        "OidcJwksUrl": f"{stack.emulator.endpoint}/{stack.outputs['UserPoolId']}/.well-known/jwks.json",
    }
    built = build(ROOT / "template.yaml", ROOT / ".build" / "stack")
    outputs = deploy(built, stack.emulator, "turngate", parameters)
    assert outputs == dict(stack.outputs), "an update of a parameter must not replace what clients use"


def _warm(world: World) -> None:
    """Two workers for each function of a turn: each is held a moment, so two conversations need two of it."""
    for name in ON_THE_PATH:
        world.stack.emulator.add_fault(action="delay", function=world.function_names[name], seconds=0.5)

    def ask(_number: int) -> str:
        return world.guest().chat().ask(QUESTION, timeout=60)["data"]["outcome"]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, range(2))) == ["answer", "answer"]
    world.stack.emulator.clear_faults()
    world.close_clients()
