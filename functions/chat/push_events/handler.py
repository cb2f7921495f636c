"""Queue `events-to-push`: who watches, and who must see it?"""

from collections.abc import Callable
from functools import partial
from typing import Any

from turngate import wiring
from turngate.chat.pushing import carry_out
from turngate.sqs_batch import RESERVE_MS, each_record

ports = wiring.live("store", "pusher")


def handle(event: dict[str, Any], ports: wiring.Ports, has_time: Callable[[], bool]) -> dict[str, Any]:
    return each_record(event, partial(carry_out, ports=ports), has_time=has_time)


def lambda_handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - LambdaContext is untyped
    return handle(event, ports, lambda: context.get_remaining_time_in_millis() > RESERVE_MS)
