"""Tells what the HTTP API passed."""

import json


def handler(event, context):
    seen = {
        "route": event["routeKey"],
        "path": event.get("pathParameters"),
        "authorizer": event["requestContext"].get("authorizer"),
    }
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(seen)}
