"""Counts messages and ticks; a job marked bad fails alone."""

import json
import os

import boto3

table = boto3.resource("dynamodb").Table(os.environ["TABLE"])


def handler(event, context):
    if event.get("source") == "aws.events":
        _count("tick")
        return None
    failures = []
    for record in event["Records"]:
        job = json.loads(record["body"])
        _count(job["id"])
        if job.get("bad"):
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}


def _count(name):
    table.update_item(
        Key={"PK": f"seen#{name}", "SK": "-"},
        UpdateExpression="ADD n :one",
        ExpressionAttributeValues={":one": 1},
    )
