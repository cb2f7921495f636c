"""The one place where ports meet adapters.

Each adapter is imported when it is first asked for, so a function pays only for the clients it uses. `live` is
called while the module is loaded: INIT runs at full CPU. The collector rests from this module's import until `live`
has built the ports, and never looks at what was built (measured: a tenth of a cold start, docs/decisions.md)."""

from __future__ import annotations

import gc
import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turngate.adapters.system import SystemClock, SystemIds
from turngate.settings import Settings

if TYPE_CHECKING:
    from turngate.ports import (
        Clock,
        ConversationStore,
        Embedder,
        EventPusher,
        Ids,
        KnowledgeIndex,
        ModelClient,
        Queue,
        TokenVerifier,
        TurnStarter,
    )


_RUNTIME_API = "AWS_LAMBDA_RUNTIME_API"
"""Set by the Lambda runtime, and nowhere else."""

if _RUNTIME_API in os.environ:
    gc.disable()  # imports make no garbage worth a search; `live` enables it, and each handler calls that


class Ports:
    """What a function may use. Tests give their own: `Ports(store=MemoryConversationStore(), …)`; a port that was
    neither given nor has its settings is a BrokenInvariantError the moment it is used."""

    def __init__(self, settings: Settings | None = None, **given: Any) -> None:  # noqa: ANN401 - any port by name
        self.settings = settings or Settings()
        self.__dict__.update(given)

    @cached_property
    def clock(self) -> Clock:
        return SystemClock()

    @cached_property
    def ids(self) -> Ids:
        return SystemIds()

    @cached_property
    def store(self) -> ConversationStore:
        from turngate.adapters.aws import client
        from turngate.adapters.dynamodb.store import DynamoDBConversationStore

        return DynamoDBConversationStore(client("dynamodb"), self.settings.require("table_name"))

    @cached_property
    def events_to_push(self) -> Queue:
        from turngate.adapters.aws import client
        from turngate.adapters.sqs import SqsQueue

        return SqsQueue(client("sqs"), self.settings.require("events_to_push_url"))

    @cached_property
    def runs_to_start(self) -> Queue:
        from turngate.adapters.aws import client
        from turngate.adapters.sqs import SqsQueue

        return SqsQueue(client("sqs"), self.settings.require("runs_to_start_url"))

    @cached_property
    def turns(self) -> TurnStarter:
        from turngate.adapters.aws import client
        from turngate.adapters.stepfunctions import StepFunctionsStarter

        return StepFunctionsStarter(client("stepfunctions"), self.settings.require("turn_machine_arn"))

    @cached_property
    def pusher(self) -> EventPusher:
        from turngate.adapters.apigateway import ApiGatewayPusher
        from turngate.adapters.aws import client

        endpoint = self.settings.require("connections_endpoint")
        return ApiGatewayPusher(client("apigatewaymanagementapi", endpoint=endpoint))

    @cached_property
    def model(self) -> ModelClient:
        from turngate.adapters.openai_chat import OpenAIChatModel

        return OpenAIChatModel(
            base_url=self.settings.require("model_base_url"),
            model=self.settings.require("model_name"),
            api_key=self.settings.require("model_api_key"),
        )

    @cached_property
    def embedder(self) -> Embedder:
        from turngate.adapters.openai_embeddings import OpenAIEmbedder

        return OpenAIEmbedder(
            base_url=self.settings.require("embedding_base_url"),
            model=self.settings.require("embedding_model"),
            api_key=self.settings.require("embedding_api_key"),
        )

    @cached_property
    def knowledge(self) -> KnowledgeIndex:
        from turngate.adapters.aws import client
        from turngate.adapters.s3 import S3Files
        from turngate.adapters.sqlite_knowledge import SqliteKnowledge

        cache = Path(tempfile.gettempdir()) / "knowledge"
        return SqliteKnowledge(S3Files(client("s3"), self.settings.require("knowledge_bucket"), cache))

    @cached_property
    def tokens(self) -> TokenVerifier:
        from turngate.adapters.oidc import OidcTokenVerifier

        return OidcTokenVerifier(
            issuer=self.settings.require("oidc_issuer"),
            audience=self.settings.require("oidc_audience"),
            jwks_url=self.settings.oidc_jwks_url or None,
        )


def live(*warm: str) -> Ports:
    """Ports of this process by its environment. In a Lambda's INIT the named ones are built at once; anywhere else a
    handler can be imported without an environment, and a port is built when it is first used."""
    ports = Ports(Settings.from_environment(os.environ))
    if _RUNTIME_API in os.environ:
        try:
            for name in warm:
                getattr(ports, name)
            gc.freeze()
        finally:
            gc.enable()
    return ports
