"""Building with the real SAM CLI and deploying by change set."""

import pytest

from local.deploy import ROOT, BuildError, DeployError, build, deploy, host_runtime, start_emulator
from local.emulator.template_file import load_template
from tests.emulator.world import APP, World, skip_without_setup

TEMPLATE = """
AWSTemplateFormatVersion: '2010-09-09'
Transform: AWS::Serverless-2016-10-31
Parameters:
  PythonRuntime: {Type: String, Default: python3.13}
Resources:
  Ours:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: ours, CompatibleRuntimes: [!Ref PythonRuntime]}
    Metadata: {BuildMethod: !Ref PythonRuntime}
  AnswerFunction:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: answer, Handler: app.handler, Runtime: !Ref PythonRuntime, Layers: [!Ref Ours]}
Outputs:
  Answer: {Value: !Ref AnswerFunction}
"""


@pytest.fixture
def app(tmp_path):
    (tmp_path / "app" / "answer").mkdir(parents=True)
    (tmp_path / "app" / "ours" / "ours").mkdir(parents=True)
    (tmp_path / "app" / "template.yaml").write_text(TEMPLATE)
    (tmp_path / "app" / "answer" / "app.py").write_text(
        "import ours\ndef handler(event, context):\n    return ours.ANSWER\n"
    )
    (tmp_path / "app" / "ours" / "ours" / "__init__.py").write_text("ANSWER = 42\n")
    (tmp_path / "app" / "ours" / "requirements.txt").write_text("")
    return tmp_path / "app"


def test_a_built_template_runs_with_its_layer_and_is_built_again_only_after_a_change(app, tmp_path):
    skip_without_setup()
    if not (ROOT / ".venvs/sam/bin/sam").exists():
        pytest.skip(".venvs/sam is missing: run `make setup`")
    built = build(app / "template.yaml", tmp_path / "build")
    first = built.stat().st_mtime_ns
    assert build(app / "template.yaml", tmp_path / "build").stat().st_mtime_ns == first

    with start_emulator(work_dir=tmp_path / "emulator") as emulator:
        running = World(emulator, deploy(built, emulator, "built", {"PythonRuntime": host_runtime()}))
        assert running.invoke("Answer") == (None, 42)

        unchanged = deploy(built, emulator, "built", {"PythonRuntime": host_runtime()})
        assert unchanged == running.outputs

        (app / "ours" / "ours" / "__init__.py").write_text("ANSWER = 43\n")
        again = build(app / "template.yaml", tmp_path / "build")
        deploy(again, emulator, "built", {"PythonRuntime": host_runtime()})
        assert running.invoke("Answer") == (None, 43)


def test_a_build_that_fails_shows_the_output_of_sam(app, tmp_path):
    if not (ROOT / ".venvs/sam/bin/sam").exists():
        pytest.skip(".venvs/sam is missing: run `make setup`")
    with pytest.raises(BuildError, match=r"python3\.99"):
        build(app / "template.yaml", tmp_path / "build", "python3.99")


def test_a_template_that_cloudformation_refuses_names_the_reason(patched, tmp_path):
    (tmp_path / "template.yaml").write_text(
        "Resources:\n  Strange: {Type: 'AWS::Strange::Thing', Properties: {}}\n"
    )
    with pytest.raises(DeployError, match="Strange"):
        deploy(tmp_path / "template.yaml", patched.emulator, "strange")


def test_short_tags_are_read_as_their_long_form(tmp_path):
    (tmp_path / "t.yaml").write_text(
        "a: !Ref X\nb: !GetAtt X.Arn.Y\nc: !Sub '${X}'\nd: !If [A, !Ref B, 1]\ne: 2012-10-17\n"
    )
    assert load_template(tmp_path / "t.yaml") == {
        "a": {"Ref": "X"},
        "b": {"Fn::GetAtt": ["X", "Arn.Y"]},
        "c": {"Fn::Sub": "${X}"},
        "d": {"Fn::If": ["A", {"Ref": "B"}, 1]},
        "e": "2012-10-17",
    }


def test_the_contract_app_deploys_with_every_output(patched):
    assert set(patched.outputs) == set(load_template(APP)["Outputs"])
