"""Echoes frames through the @connections API."""

import json
import os
import time

import boto3

management = boto3.client("apigatewaymanagementapi", endpoint_url=os.environ["CONNECTIONS_ENDPOINT"])


def handler(event, context):
    request = event["requestContext"]
    if request["routeKey"] in ("$connect", "$disconnect"):
        return {"statusCode": 200}
    frame = json.loads(event["body"])
    if frame["type"] == "fail":
        raise RuntimeError("secret detail")
    time.sleep(frame.get("seconds", 0))
    answer = {"frame": frame, "context": request}
    management.post_to_connection(ConnectionId=request["connectionId"], Data=json.dumps(answer).encode())
    return {"statusCode": 200}
