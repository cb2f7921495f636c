"""API Gateway's @connections as the way back to a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from turngate.adapters.aws import http_status, transient

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient

GONE = 410


class ApiGatewayPusher:
    """Posts to the sockets of one WebSocket API stage; the client's endpoint is that stage's callback URL."""

    def __init__(self, client: ApiGatewayManagementApiClient) -> None:
        self._client = client

    def post(self, connection_id: str, frame: bytes) -> bool:
        with transient("execute-api:PostToConnection"):
            try:
                self._client.post_to_connection(ConnectionId=connection_id, Data=frame)
            except ClientError as error:
                if http_status(error) != GONE:
                    raise
                return False
        return True

    def disconnect(self, connection_id: str) -> None:
        """Close a connection; one that is gone is closed. Raises TransientError."""
        with transient("execute-api:DeleteConnection"):
            try:
                self._client.delete_connection(ConnectionId=connection_id)
            except ClientError as error:
                if http_status(error) != GONE:
                    raise
