"""Pools of Lambda workers and the package cache, without an emulator around them."""

import io
import json
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from local.emulator.lambda_worker import FunctionSpec, KillPlan, WorkerLimits
from local.emulator.package_cache import WORTH_COMPILING, PackageCache, UnsafePackageError
from local.emulator.patches.lambda_ import logging_variables
from local.emulator.settings import EmulatorSettings
from local.emulator.worker_pools import WorkerPools
from tests.emulator.world import skip_without_setup

HANDLER = """
import os, time
def handler(event, context):
    time.sleep(event.get("seconds", 0))
    print("said", event.get("say"))
    return {"pid": os.getpid(), "say": event.get("say")}
"""
PYTHON = EmulatorSettings().runtime_python


@pytest.fixture
def spec(tmp_path):
    skip_without_setup()
    (tmp_path / "app.py").write_text(HANDLER)
    return FunctionSpec(
        name="one",
        arn="arn:aws:lambda:eu-west-1:000000000000:function:one",
        handler="app.handler",
        runtime="python3.11",
        timeout=10,
        memory=128,
        version="$LATEST",
        code=tmp_path,
        layers=(),
        environment=(),
        credentials=(),
        region="eu-west-1",
        endpoint="http://127.0.0.1:1",
    )


@pytest.fixture
def pools():
    made = []

    def make(per_function=2, in_all=3, idle_seconds=60.0):
        made.append(
            WorkerPools(WorkerLimits(per_function, in_all, idle_seconds, parallel_cold_starts=2), PYTHON)
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_warm_worker_is_used_again(spec, pools):
    running = pools()
    first, second = (running.invoke(spec, {}, f"id-{n}") for n in range(2))
    assert (first.cold, second.cold) == (True, False)
    assert first.body["pid"] == second.body["pid"]


def test_calls_beyond_the_bound_wait_and_are_all_served(spec, pools):
    running = pools(per_function=2)
    with ThreadPoolExecutor(8) as callers:
        outcomes = list(
            callers.map(lambda n: running.invoke(spec, {"seconds": 0.05, "say": n}, f"id-{n}"), range(8))
        )
    assert [outcome.body["say"] for outcome in outcomes] == list(range(8))
    assert len({outcome.body["pid"] for outcome in outcomes}) <= 2
    assert running.census() == {"one": 2}


def test_the_longest_idle_worker_makes_room_for_another_function(spec, pools):
    running = pools(per_function=2, in_all=2)
    old = running.invoke(spec, {}, "id-1").body["pid"]
    running.invoke(replace(spec, name="two"), {}, "id-2")
    running.invoke(replace(spec, name="three"), {}, "id-3")
    assert running.census() == {"two": 1, "three": 1}
    assert not psutil.pid_exists(old)


def test_idle_workers_are_reaped(spec, pools):
    running = pools(idle_seconds=0.2)
    running.invoke(spec, {}, "id-1")
    deadline = time.monotonic() + 5
    while running.census() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running.census() == {}


def test_a_function_that_changed_gets_a_new_worker(spec, pools):
    running = pools()
    before = running.invoke(spec, {}, "id-1").body["pid"]
    running.forget("one")
    after = running.invoke(replace(spec, environment=(("NEW", "1"),)), {}, "id-2")
    assert after.cold
    assert not psutil.pid_exists(before)


def test_lines_belong_to_the_invocation_that_wrote_them(spec, pools):
    running = pools()
    logs = [running.invoke(spec, {"say": n}, f"id-{n}").log for n in range(3)]
    assert [log.strip() for log in logs] == ["said 0", "said 1", "said 2"]


def test_a_function_with_json_logs_writes_each_record_with_its_request_and_extras(spec, pools):
    (spec.code / "app.py").write_text(
        "import logging\n"
        "def handler(event, context):\n"
        "    logging.getLogger().info('begin', extra={'run': event['run']})\n"
    )
    said = logging_variables({"LogFormat": "JSON", "LogGroup": "/ours", "ApplicationLogLevel": "INFO"})
    log = pools().invoke(replace(spec, logging=said), {"run": "r1"}, "id-1").log
    record = json.loads(log)
    assert (record["message"], record["level"], record["run"]) == ("begin", "INFO", "r1")
    assert record["requestId"] == "id-1"


def test_an_invocation_out_of_time_is_killed_and_said_so(spec, pools):
    outcome = pools().invoke(replace(spec, timeout=0.3), {"seconds": 5}, "id-1")
    assert outcome.kind == "timeout"
    assert outcome.body["errorType"] == "Sandbox.Timedout"
    assert outcome.body["errorMessage"].endswith("id-1 Task timed out after 0.30 seconds")


def test_a_handler_that_cannot_be_imported_is_an_error_of_the_runtime(spec, pools):
    outcome = pools().invoke(replace(spec, handler="nothing.handler"), {}, "id-1")
    assert (outcome.kind, outcome.body["errorType"]) == ("error", "Runtime.ImportModuleError")


def test_a_worker_killed_before_the_event_has_not_run_it(spec, pools, tmp_path):
    running = pools()
    outcome = running.invoke(spec, {"say": "never"}, "id-1", plan=KillPlan(kill="before"))
    assert outcome.body["errorType"] == "Runtime.ExitError"
    assert "never" not in outcome.log


def test_a_worker_killed_after_the_event_has_run_it(spec, pools):
    running = pools()
    outcome = running.invoke(spec, {"say": "done"}, "id-1", plan=KillPlan(kill="after"))
    assert outcome.body["errorType"] == "Runtime.ExitError"
    assert "said done" in outcome.log


def package(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/") + ".py", text)
    return buffer.getvalue()


def test_a_large_package_is_compiled_for_the_runtime(tmp_path):
    skip_without_setup()
    layer = package(**{f"module{n}": "x = 1" for n in range(WORTH_COMPILING)})
    folder = PackageCache(tmp_path, PYTHON).directory_of(layer)
    assert len(list((folder / "__pycache__").glob("*.pyc"))) == WORTH_COMPILING


def test_equal_packages_are_unzipped_once(tmp_path):
    cache = PackageCache(tmp_path, PYTHON)
    first = cache.directory_of(package(app="x = 1"))
    assert cache.directory_of(package(app="x = 1")) == first
    assert cache.directory_of(package(app="x = 2")) != first


def test_two_caches_of_one_directory_do_not_disturb_each_other(tmp_path):
    skip_without_setup()
    zipped = package(app="x = 1")
    start = threading.Barrier(2)

    def unzip(_):
        cache = PackageCache(tmp_path, PYTHON)
        start.wait()
        return cache.directory_of(zipped)

    with ThreadPoolExecutor(2) as threads:
        found = set(threads.map(unzip, range(2)))
    assert len(found) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == [next(iter(found)).name]


def test_a_package_that_leaves_its_directory_is_refused(tmp_path):
    cache = PackageCache(tmp_path / "cache", Path(PYTHON))
    with pytest.raises(UnsafePackageError):
        cache.directory_of(package(**{"..__..__evil": "x"}))
    assert not (tmp_path / "evil.py").exists()
