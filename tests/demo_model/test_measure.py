"""The figures an operator gets for a catalogue of their own."""

from __future__ import annotations

import json
import re
import subprocess

from tests.demo_model.catalogue import INTENTS
from tests.demo_model.serving import PATIENCE, PYTHON, ROOT


def test_measuring_a_config_prints_one_line_of_figures_for_each_language(tmp_path, server):
    intents = [
        {key: {"zh-CN": intent[key], "en": intent[key]} for key in ("name", "description")}
        | {"id": intent["id"], "examples": intent["examples"]}
        for intent in INTENTS[:4]
    ]
    config, strangers = tmp_path / "config.json", tmp_path / "strangers.txt"
    config.write_text(json.dumps({"intents": intents}), encoding="utf-8")
    strangers.write_text("今天天气怎么样\nTell me a joke\n", encoding="utf-8")
    command = [str(PYTHON), "-m", "local.demo_model.measure", str(config), str(strangers)]
    printed = subprocess.run(  # noqa: S603 - our own interpreter and module
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout
    found = re.findall(r"(zh-CN|en): 16 examples left out, top-1 (\S+), .* below 0.4: (\S+)", printed)
    assert [language for language, _, _ in found] == ["zh-CN", "en"]
    assert all(float(top) > 0.8 and float(strange) == 1 for _, top, strange in found), printed
