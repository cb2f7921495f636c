"""The one place that makes AWS clients.

botocore alone, because boto3 costs a quarter of a function's import time and adds nothing we use; and with data of
our own in front of botocore's, because reading the endpoints and models of all of AWS cost another quarter. No client
retries by itself: every call has one owner of its retries, and that is the state machine or the queue.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader
from botocore.session import Session, get_session

from turngate.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECT_TIMEOUT_S = 1.0
READ_TIMEOUT_S = 5.0
DATA = Path(__file__).with_name("aws_data")
"""The models of the operations we call and the endpoints of their services; tools/aws_data.py writes it."""


class OwnDataFirst(Loader):
    """Finds our data before botocore's, and botocore's whenever we have none: the runtime's botocore may be another
    than the one our data was made from, and may ask for more."""

    def __init__(self) -> None:
        super().__init__(extra_search_paths=[str(DATA)])

    def list_available_services(self, type_name: str) -> list[str]:
        """The services with a folder. botocore looks into each of its 450 for `type_name`; a service without it is a
        DataNotFoundError one step later here."""
        del type_name
        return self._folders

    @cached_property
    def _folders(self) -> list[str]:
        places = (Path(place) for place in self.search_paths)
        return sorted({folder.name for place in places if place.is_dir() for folder in place.iterdir()})

    def is_builtin_path(self, path: str) -> bool:
        """Ours is a part of the built-in endpoints. Of endpoints that a user brought, botocore would believe the
        address and ignore FIPS, dual-stack and account ids."""
        return super().is_builtin_path(path) or Path(path).is_relative_to(DATA)


@cache
def _session() -> Session:
    # it announces credentials and endpoints at INFO, on every cold start
    logging.getLogger("botocore").setLevel(logging.WARNING)
    session = get_session()
    session.register_component("data_loader", OwnDataFirst())
    return session


def client(
    service: str,
    *,
    endpoint: str | None = None,
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    read_timeout_s: float = READ_TIMEOUT_S,
) -> Any:  # noqa: ANN401 - botocore builds its client classes at run time; each adapter names the stub it expects
    """A client of one service: one attempt, short timeouts, the operations of `tools/aws_data.py`. Region, credentials
    and `AWS_ENDPOINT_URL` come from the environment as in every AWS tool; `endpoint` is for an API's own address
    (`@connections`)."""
    config = Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        retries={"total_max_attempts": 1, "mode": "standard"},
        tcp_keepalive=True,
    )
    return _session().create_client(service, endpoint_url=endpoint, config=config)


def error_code(error: ClientError) -> str:
    """The service's own name for what happened, such as `ExecutionAlreadyExists`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def http_status(error: ClientError) -> int:
    """The HTTP status of the answer; 0 when there was none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


@contextmanager
def transient(operation: str) -> Iterator[None]:
    """Whatever AWS or the network refuses inside becomes a TransientError that names `operation` and the code."""
    try:
        yield
    except ClientError as error:
        raise TransientError(f"{operation}: {error_code(error)} ({http_status(error)})") from error
    except BotoCoreError as error:
        raise TransientError(f"{operation}: {type(error).__name__}") from error
