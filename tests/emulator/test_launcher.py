"""The emulator process: what it refuses, where it listens, what it leaves behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from local.deploy import ROOT, EmulatorError, EmulatorSettings, start_emulator
from local.emulator.settings import SettingsError
from tests.emulator.world import skip_without_setup, world


def launch(python, *arguments, **environment):
    return subprocess.run(  # noqa: S603  # our own interpreter
        [python, "-m", "local.emulator", *arguments],
        cwd=ROOT,
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_another_release_of_ministack_is_refused_with_what_to_do():
    done = launch(sys.executable)  # the developers' own environment has none
    assert done.returncode == 2
    assert "needs ministack==1.5.33 and found none; run `make setup`" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("TURNGATE_EMULATOR_POTR", "1", "is not a setting"),
        ("TURNGATE_EMULATOR_PORT", "many", "TURNGATE_EMULATOR_PORT='many'"),
        ("TURNGATE_EMULATOR_AUTH", "maybe", "neither true nor false"),
        ("TURNGATE_EMULATOR_WORKERS_IN_ALL", "0", "must be 1 or more"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_named(variable, value, complaint):
    with pytest.raises(SettingsError, match=complaint):
        EmulatorSettings.from_environment({variable: value, "PATH": "/bin"})


def test_settings_survive_the_way_through_the_environment():
    settings = EmulatorSettings(
        port=5000, auth=False, observe_file=Path("/x/y"), idle_seconds=1.5, without=frozenset({"a", "b"})
    )
    assert EmulatorSettings.from_environment(settings.environment()) == settings


def test_nothing_of_the_callers_environment_reaches_ministack():
    inherited = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "real", "OPENAI_API_KEY": "real", "HTTP_PROXY": "x"}
    environment = EmulatorSettings().ministack_environment(inherited)
    assert "real" not in environment.values()
    assert "HTTP_PROXY" not in environment


def test_a_typing_slip_in_without_is_refused():
    skip_without_setup()
    done = launch(str(ROOT / ".venvs/emulator/bin/python"), "--without", "tabel-ttl")
    assert done.returncode == 2
    assert "no patch named tabel-ttl" in done.stderr


def test_all_sockets_of_the_emulator_are_on_loopback(patched):
    patched.invoke("Probe", op="echo")
    leader = psutil.Process(patched.emulator.process_id)
    listening = [
        connection.laddr
        for process in (leader, *leader.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert {address.ip for address in listening} == {"127.0.0.1"}
    assert patched.emulator.settings.port in {address.port for address in listening}


def test_the_emulator_is_healthy_within_three_seconds_and_ends_with_its_block(tmp_path):
    skip_without_setup()
    started = time.monotonic()
    with start_emulator(work_dir=tmp_path) as emulator:
        took = time.monotonic() - started
        assert psutil.pid_exists(emulator.process_id)
    assert took < 10  # 1.0 to 1.4 s on an idle machine
    assert not psutil.pid_exists(emulator.process_id)


def test_an_emulator_that_cannot_start_says_why(tmp_path):
    skip_without_setup()
    settings = EmulatorSettings(without=frozenset({"no-such-patch"}))
    refused = pytest.raises(EmulatorError, match="no patch named no-such-patch")
    with refused, start_emulator(settings, work_dir=tmp_path):
        pass


def test_ctrl_c_leaves_no_process_behind(tmp_path):
    skip_without_setup()
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from local.deploy import start_emulator
        with start_emulator(work_dir=Path(sys.argv[1])) as emulator:
            print(emulator.process_id, flush=True)
            time.sleep(60)
        """
    )
    with subprocess.Popen(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as demo:
        emulator = psutil.Process(int(demo.stdout.readline()))
        demo.send_signal(signal.SIGINT)
        demo.wait(timeout=20)
    assert not emulator.is_running()


def test_workers_are_killed_with_the_emulator(tmp_path_factory):
    skip_without_setup()
    with world(tmp_path_factory, "short-lived") as running:
        pid = running.invoke("Probe", op="echo")[1]["pid"]
        worker = psutil.Process(pid)
        assert worker.is_running()
    assert not worker.is_running()


def test_the_patches_are_listed_with_their_reasons():
    skip_without_setup()
    done = launch(str(ROOT / ".venvs/emulator/bin/python"), "--list-patches")
    assert done.returncode == 0
    assert "express-names-repeat\n    A name used twice" in done.stdout


def test_census_counts_live_workers(patched):
    patched.invoke("Probe", op="echo")
    assert patched.emulator.census()[patched["Probe"]] >= 1
