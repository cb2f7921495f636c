"""Schedule, every minute: two passes 30 s apart over the due index; whatever is owed and late gets done."""

import logging
from dataclasses import asdict
from typing import Any

from turngate import wiring
from turngate.protocol.sweeping import SweepFindings
from turngate.states.sweep import sweep_twice

logger = logging.getLogger()
ports = wiring.live("store", "runs_to_start", "events_to_push")


def handle(request_id: str, ports: wiring.Ports) -> tuple[SweepFindings, ...]:
    return sweep_twice(ports, writer=request_id)


def lambda_handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - LambdaContext is untyped
    findings = handle(context.aws_request_id, ports)
    for each in findings:
        logger.log(
            logging.WARNING if each.progress or each.failures else logging.INFO, "sweep", extra=asdict(each)
        )
    return {"findings": [asdict(each) for each in findings]}
