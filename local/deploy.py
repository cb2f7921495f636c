"""Build the SAM template, start the emulator, deploy into it: the demo and the stack tests share this path.

built = build(ROOT / "template.yaml", ROOT / ".build/app")
with start_emulator() as emulator:
    outputs = deploy(built, emulator, "turngate", {"PythonRuntime": host_runtime()})
"""

from local.emulator.process import Emulator, EmulatorError, start_emulator
from local.emulator.sam_build import BuildError, build, host_architecture, host_runtime
from local.emulator.settings import ROOT, EmulatorSettings
from local.emulator.stack import DeployError, deploy

__all__ = [
    "ROOT",
    "BuildError",
    "DeployError",
    "Emulator",
    "EmulatorError",
    "EmulatorSettings",
    "build",
    "deploy",
    "host_architecture",
    "host_runtime",
    "start_emulator",
]
