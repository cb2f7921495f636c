"""Does what its event says and tells what it sees."""

import json
import os
import sys
import time

import boto3

calls = 0


class TransientError(Exception):
    """Named in the machine's Retry."""


class RefusedError(Exception):
    """Named in no Retry."""


def handler(event, context):
    global calls  # noqa: PLW0603  # the point: warm environments keep it
    calls += 1
    match event.get("op"):
        case "echo":
            return {**event, "calls": calls, "pid": os.getpid()}
        case "info":
            return {
                "environment": dict(os.environ),
                "path": sys.path,
                "executable": sys.executable,
                "remaining_ms": context.get_remaining_time_in_millis(),
                "greeting": __import__("greeting").WHO,
                "sees_ministack": _importable("ministack"),
            }
        case "sleep":
            time.sleep(event["seconds"])
            return {"slept": event["seconds"], "pid": os.getpid()}
        case "raise":
            print("about to raise")  # noqa: T201  # a function's log line
            raise {"TransientError": TransientError, "RefusedError": RefusedError}[event["error"]]("as asked")
        case "exit":
            os._exit(3)
        case "aws":
            return _call(event)
    raise ValueError(event)


def _importable(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def _call(event):
    client = boto3.client(event["service"], endpoint_url=event.get("endpoint"))
    try:
        result = getattr(client, event["method"])(**event["arguments"])
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}
    result.pop("ResponseMetadata", None)
    return {"ok": json.loads(json.dumps(result, default=str))}
