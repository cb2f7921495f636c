"""The whole product on this machine: the deployed template on the emulator, a model, and the example tenant.

The demo, `make demo-check` and the stack tests all start it here."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from local.chat_client import ChatClient, welcome
from local.deploy import Emulator, build, deploy, start_emulator
from local.tenants import MALL, Loader, private_collections, read_tenant
from turngate.adapters.dynamodb.store import DynamoDBConversationStore
from turngate.adapters.openai_embeddings import OpenAIEmbedder
from turngate.adapters.s3 import S3Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from local.deploy import EmulatorSettings

ROOT = Path(__file__).resolve().parents[1]
DEMO_MODEL = "turngate-demo"
_STAGE = "live"
_STACK_NAME = "turngate"


class ModelSettingsError(ValueError):
    """Raised when the environment names only half of a model endpoint; the message says which variable is missing."""


class DemoModelError(RuntimeError):
    """Raised when the offline demo model does not start; the message ends with what it printed."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """An OpenAI-compatible endpoint, for chat and for embeddings."""

    base_url: str
    name: str
    api_key: str = "none"
    embedding_base_url: str = ""
    embedding_name: str = ""
    embedding_api_key: str = "none"

    @property
    def parameters(self) -> dict[str, str]:
        return {
            "ModelBaseUrl": self.base_url,
            "ModelName": self.name,
            "ModelApiKey": self.api_key,
            "EmbeddingBaseUrl": self.embedding_base_url or self.base_url,
            "EmbeddingModel": self.embedding_name or self.name,
            "EmbeddingApiKey": self.embedding_api_key if self.embedding_base_url else self.api_key,
        }


@dataclass(frozen=True)
class Stack:
    """A running stack with the tenant `mall` loaded."""

    emulator: Emulator
    outputs: Mapping[str, str]
    model: ModelEndpoint
    loader: Loader

    @property
    def http_url(self) -> str:
        return self.outputs["ChatHttpUrl"]

    @property
    def socket_url(self) -> str:
        return self.emulator.websocket_url(self.outputs["ChatSocketApiId"], _STAGE)

    @cached_property
    def store(self) -> DynamoDBConversationStore:
        """The table, with root rights: for loading tenants and for looking at what happened."""
        return DynamoDBConversationStore(self.emulator.client("dynamodb"), self.outputs["TableName"])


def model_from_environment(environment: Mapping[str, str]) -> ModelEndpoint | None:
    """The endpoint that MODEL_BASE_URL, MODEL_NAME and MODEL_API_KEY name; None for the offline demo model.
    Embeddings stay with the demo model unless EMBEDDING_BASE_URL and EMBEDDING_MODEL (and EMBEDDING_API_KEY) are given
    too. Raises ModelSettingsError for half of either."""
    base_url = environment.get("MODEL_BASE_URL", "")
    name = environment.get("MODEL_NAME", "")
    if not base_url and not name:
        return None
    if not base_url or not name:
        raise ModelSettingsError(
            "set MODEL_BASE_URL and MODEL_NAME together (and MODEL_API_KEY if it needs one)"
        )
    embedding_url, embedding_model = (
        environment.get("EMBEDDING_BASE_URL", ""),
        environment.get("EMBEDDING_MODEL", ""),
    )
    if bool(embedding_url) != bool(embedding_model):
        raise ModelSettingsError("set EMBEDDING_BASE_URL and EMBEDDING_MODEL together, or neither")
    return ModelEndpoint(
        base_url=base_url,
        name=name,
        api_key=environment.get("MODEL_API_KEY", "") or "none",
        embedding_base_url=embedding_url,
        embedding_name=embedding_model,
        embedding_api_key=environment.get("EMBEDDING_API_KEY", "") or "none",
    )


@contextlib.contextmanager
def demo_model() -> Iterator[ModelEndpoint]:
    """The offline demo model as a process of its own, on a free port of 127.0.0.1."""
    errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed with the process below
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [str(ROOT / ".venvs/demo-model/bin/python"), "-m", "local.demo_model", "--port", "0"],
        cwd=ROOT,
        env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,  # Ctrl-C is for whoever started the stack; it stops this one in its turn
        text=True,
    )
    try:
        if process.stdout is None:
            raise DemoModelError("no output")
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            process.wait()
            errors.seek(0)
            raise DemoModelError(f"the demo model did not start: {line}{errors.read()[-2000:]}")
        yield ModelEndpoint(base_url=line.removeprefix("listening on ").strip(), name=DEMO_MODEL)
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.stdout is not None:
            process.stdout.close()
        errors.close()


@contextlib.contextmanager
def run_stack(
    *,
    model: ModelEndpoint | None = None,
    observe: bool = False,
    work_dir: Path | None = None,
    parameters: Mapping[str, str] | None = None,
    settings: EmulatorSettings | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> Iterator[Stack]:
    """Build, start, deploy, load; stop everything when the block ends. `say` hears one line a step."""
    with contextlib.ExitStack() as running:
        step = _Steps(say)
        built = build(ROOT / "template.yaml", ROOT / ".build" / "stack")
        step.done("built the template (sam build)")
        offline = running.enter_context(demo_model())
        step.done("started the offline demo model")
        endpoint = _complete(model, offline)
        emulator = running.enter_context(start_emulator(settings, work_dir=work_dir, observe=observe))
        step.done("started the AWS emulator on 127.0.0.1")
        given = {
            "ExecuteApiBaseUrl": f"{emulator.endpoint}/_aws/execute-api",
            **endpoint.parameters,
            **(parameters or {}),
        }
        outputs = deploy(built, emulator, _STACK_NAME, given)
        step.done("deployed the stack")
        stack = _stack(emulator, outputs, endpoint)
        config, collections = read_tenant(MALL)
        counts = stack.loader.load(config, collections, private=private_collections(MALL))
        step.done(
            f"loaded tenant {config.account}: {sum(counts.values())} documents, {len(counts)} collections"
        )
        _warm_up(stack)
        step.done("warmed up with two guests' questions")
        yield stack


def _warm_up(stack: Stack) -> None:
    """Two guests ask at the same time, so that each function has two warm workers: a cold start on two cores would
    otherwise let a first answer overtake the second message."""

    failures: list[Exception] = []

    def ask(question: str) -> None:
        try:
            with ChatClient(stack.http_url, stack.socket_url, welcome(stack.http_url)) as guest:
                guest.ask(question, timeout=60)
        except Exception as error:
            failures.append(error)

    # daemons, unlike a pool's threads: Ctrl-C does not wait for their answers
    guests = [
        threading.Thread(target=ask, args=(text,), daemon=True)
        for text in ("保修多久?", "How do I return an item?")
    ]
    for guest in guests:
        guest.start()
    for guest in guests:
        guest.join()
    if failures:
        raise failures[0]


def _complete(model: ModelEndpoint | None, offline: ModelEndpoint) -> ModelEndpoint:
    if model is None:
        return offline
    if model.embedding_base_url:
        return model
    return ModelEndpoint(
        base_url=model.base_url,
        name=model.name,
        api_key=model.api_key,
        embedding_base_url=offline.base_url,
        embedding_name=offline.name,
    )


def _stack(emulator: Emulator, outputs: Mapping[str, str], endpoint: ModelEndpoint) -> Stack:
    store = DynamoDBConversationStore(emulator.client("dynamodb"), outputs["TableName"])
    cache = ROOT / ".local" / "fetched"
    files = S3Files(emulator.client("s3"), outputs["KnowledgeBucketName"], cache)
    parameters = endpoint.parameters
    embedder = OpenAIEmbedder(
        base_url=parameters["EmbeddingBaseUrl"],
        model=parameters["EmbeddingModel"],
        api_key=parameters["EmbeddingApiKey"],
    )
    return Stack(emulator, outputs, endpoint, Loader(store, files, embedder))


class _Steps:
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._began = time.monotonic()

    def done(self, what: str) -> None:
        now = time.monotonic()
        self._say(f"{now - self._began:6.1f} s  {what}")
        self._began = now
