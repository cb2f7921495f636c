"""Partial batch responses of an SQS event source: what failed comes back alone, the rest is done.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
Ten lines instead of Powertools' batch utility, whose import costs 0.6 x boto3's on every cold start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from turngate.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

RESERVE_MS = 4_000
"""Time a function keeps for the record it is at."""


def each_record(
    event: dict[str, Any], carry_out: Callable[[str], object], *, has_time: Callable[[], bool]
) -> dict[str, Any]:
    """Run `carry_out` over the bodies; report the transient failures back to SQS. A record that fails for good is
    reported too: its redrive policy moves it to the dead letter queue, where someone looks. Once `has_time` says no,
    the rest goes back untried: a timeout of the function would fail the whole batch, the done part included."""
    failures = []
    for record in event["Records"]:
        if not has_time():
            failures.append({"itemIdentifier": record["messageId"]})
            continue
        try:
            carry_out(record["body"])
        except TransientError as error:
            logger.warning("record failed", extra={"message_id": record["messageId"], "error": str(error)})
            failures.append({"itemIdentifier": record["messageId"]})
        except Exception:
            logger.exception("record cannot be handled", extra={"message_id": record["messageId"]})
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}
