"""Queue `events-to-push`: who watches, and who must see it?"""

from functools import partial
from typing import Any

from turngate import wiring
from turngate.chat.pushing import carry_out
from turngate.sqs_batch import each_record

ports = wiring.live("store", "pusher")


def handle(event: dict[str, Any], ports: wiring.Ports) -> dict[str, Any]:
    return each_record(event, partial(carry_out, ports=ports))


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return handle(event, ports)
