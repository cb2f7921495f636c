"""API Gateway's @connections as the way back to a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from turngate.adapters.aws import http_status, transient

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient

    from turngate.ports import Posted

_OF_THIS_CONNECTION: dict[int, Posted] = {410: "gone", 403: "refused", 413: "refused", 429: "refused"}
"""429 LimitExceededException is also what a client gets whose buffer is full because it does not read: waiting for it
would hold up everybody else."""


class ApiGatewayPusher:
    """Posts to the sockets of one WebSocket API stage; the client's endpoint is that stage's callback URL."""

    def __init__(self, client: ApiGatewayManagementApiClient) -> None:
        self._client = client

    def post(self, connection_id: str, frame: bytes) -> Posted:
        with transient("execute-api:PostToConnection"):
            try:
                self._client.post_to_connection(ConnectionId=connection_id, Data=frame)
            except ClientError as error:
                told = _OF_THIS_CONNECTION.get(http_status(error))
                if told is None:
                    raise
                return told
        return "delivered"
