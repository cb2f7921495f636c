"""SQS as a queue of JSON messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from turngate.adapters.aws import transient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_sqs import SQSClient


class SqsQueue:
    """One standard queue (at least once, in no order), known by its URL."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, body: Mapping[str, Any]) -> None:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        with transient("sqs:SendMessage"):
            self._client.send_message(QueueUrl=self._url, MessageBody=text)
