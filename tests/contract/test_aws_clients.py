"""A client with our data speaks to AWS as one with botocore's own: same models, same addresses, same signatures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import BotoCoreError, UnknownServiceError
from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape
from botocore.session import Session, get_session

from tools.aws_data import OPERATIONS
from turngate.adapters import aws

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest

REGIONS = ("eu-central-1", "us-east-1", "cn-north-1", "us-gov-west-1")
SETTINGS: dict[str, dict[str, str]] = {
    "plain": {},
    "fips": {"AWS_USE_FIPS_ENDPOINT": "true"},
    "dual-stack": {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
    "fips and dual-stack": {"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"},
    "account id": {"AWS_ACCOUNT_ID": "123456789012"},
    "account id disabled": {"AWS_ACCOUNT_ID": "123456789012", "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled"},
    "account id required": {"AWS_ACCOUNT_ID_ENDPOINT_MODE": "required"},
    "emulator": {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
    "emulator of one service": {"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9"},
}
QUEUE = "https://sqs.eu-central-1.amazonaws.com/123456789012/events-to-push"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "apigatewaymanagementapi": ("post_to_connection", {"ConnectionId": "c=", "Data": b"{}"}),
    "dynamodb": ("get_item", {"TableName": "t", "Key": {"PK": {"S": "a"}}}),
    "s3": ("get_object", {"Bucket": "knowledge", "Key": "k"}),
    "sqs": ("send_message", {"QueueUrl": QUEUE, "MessageBody": "{}"}),
    "stepfunctions": (
        "start_execution",
        {"stateMachineArn": "arn:aws:states:eu-central-1:123456789012:stateMachine:m", "name": "n"},
    ),
    "sts": ("get_caller_identity", {}),  # none of ours: botocore's own data with our endpoints
}
BOTOCORE = Loader()
OURS = aws.OwnDataFirst()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")


def session(loader: Loader) -> Session:
    made = get_session()
    made.register_component("data_loader", loader)
    return made


class SentError(Exception):
    """Raised instead of sending."""

    def __init__(self, request: AWSPreparedRequest) -> None:
        super().__init__(request.url)
        self.request = request


def do_not_send(request: AWSPreparedRequest, **_: Any) -> None:
    raise SentError(request)


def said_by(loader: Loader, service: str, region: str) -> dict[str, str]:
    """What a client sends first, or why it does not: address, method, body, and what the signature covers."""
    try:
        client = session(loader).create_client(service, region_name=region)
        client.meta.events.register("before-send", do_not_send)
        operation, arguments = CALLS[service]
        getattr(client, operation)(**arguments)
    except BotoCoreError as error:
        return {"error": repr(error)}
    except SentError as sent:
        request = sent.request
    said = {
        "url": request.url,
        "method": request.method,
        "body": str(request.body),
        "headers": " ".join(sorted(request.headers)),
        "signature": re.sub(r"Signature=\w+|/\d{8}/", "", str(request.headers["Authorization"])),
    }
    # where no rule set is asked; no request goes there
    return {**said, "base": client.meta.endpoint_url} if service in OPERATIONS else said


@pytest.mark.parametrize("service", CALLS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_requests_go_where_botocores_own_data_sends_them(
    service: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SETTINGS[setting].items():
        monkeypatch.setenv(name, value)
    for region in REGIONS:
        assert said_by(OURS, service, region) == said_by(BOTOCORE, service, region)


@pytest.mark.parametrize("service", CALLS)
@pytest.mark.parametrize("region", REGIONS)
def test_a_plain_request_is_sent_and_signed_for_its_region(service: str, region: str) -> None:
    said = said_by(OURS, service, region)
    assert ".amazonaws.com" in said["url"]
    assert f"{region}/" in said["signature"]


def test_the_settings_of_an_address_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    def url(service: str, setting: str) -> str:
        with monkeypatch.context() as environment:
            for name, value in SETTINGS[setting].items():
                environment.setenv(name, value)
            return said_by(OURS, service, "us-east-1")["url"]

    assert url("dynamodb", "plain") == "https://dynamodb.us-east-1.amazonaws.com/"
    assert url("dynamodb", "fips") == "https://dynamodb-fips.us-east-1.amazonaws.com/"
    assert url("dynamodb", "dual-stack") == "https://dynamodb.us-east-1.api.aws/"
    assert url("dynamodb", "account id") == "https://123456789012.ddb.us-east-1.amazonaws.com/"
    assert url("stepfunctions", "emulator") == "http://127.0.0.1:9/"


def models(service: str) -> tuple[ServiceModel, ServiceModel]:
    """Ours and botocore's, read anew: a client writes into the model it was made from."""
    return (
        ServiceModel(aws.OwnDataFirst().load_service_model(service, "service-2"), service_name=service),
        ServiceModel(Loader().load_service_model(service, "service-2"), service_name=service),
    )


def without_texts(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: without_texts(each)
                for key, each in value.items()
                if key != "documentation" or isinstance(each, dict)
            }
        case list():
            return [without_texts(each) for each in value]
    return value


def assert_same_shape(ours: Shape | None, theirs: Shape | None, seen: set[str]) -> None:
    """Both know the same of this shape and of all below it; `seen` ends the circles."""
    if ours is None or theirs is None:
        assert ours is theirs
        return
    assert without_texts(ours._shape_model) == without_texts(theirs._shape_model), ours.name
    assert ours.metadata == theirs.metadata
    assert ours.serialization == theirs.serialization
    if ours.name in seen:
        return
    seen.add(ours.name)
    match ours, theirs:
        case StructureShape(), StructureShape():
            assert list(ours.members) == list(theirs.members)
            for name, member in ours.members.items():
                assert_same_shape(member, theirs.members[name], seen)
        case ListShape(), ListShape():
            assert_same_shape(ours.member, theirs.member, seen)
        case MapShape(), MapShape():
            assert_same_shape(ours.key, theirs.key, seen)
            assert_same_shape(ours.value, theirs.value, seen)


@pytest.mark.parametrize(
    ("service", "operation"), [(service, name) for service, names in OPERATIONS.items() for name in names]
)
def test_an_operation_is_botocores_own_to_the_last_shape(service: str, operation: str) -> None:
    ours, theirs = (model.operation_model(operation) for model in models(service))
    assert without_texts(ours._operation_model) == without_texts(theirs._operation_model)
    seen: set[str] = set()
    assert_same_shape(ours.input_shape, theirs.input_shape, seen)
    assert_same_shape(ours.output_shape, theirs.output_shape, seen)
    for mine, other in zip(ours.error_shapes, theirs.error_shapes, strict=True):
        assert_same_shape(mine, other, seen)
    assert seen


@pytest.mark.parametrize("service", OPERATIONS)
def test_a_service_has_its_traits_and_every_error(service: str) -> None:
    ours, theirs = models(service)
    assert ours.metadata == theirs.metadata
    assert ours.client_context_parameters == theirs.client_context_parameters
    codes = [shape.error_code for shape in theirs.error_shapes]
    assert codes or service == "s3"
    assert [shape.error_code for shape in ours.error_shapes] == codes
    for mine, other in zip(ours.error_shapes, theirs.error_shapes, strict=True):
        assert_same_shape(mine, other, set())


@pytest.mark.parametrize("service", OPERATIONS)
def test_our_clients_have_the_listed_operations_and_no_other(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert set(aws.client(service).meta.method_to_api_mapping.values()) == OPERATIONS[service]


def test_what_we_do_not_have_is_botocores() -> None:
    assert OURS.load_service_model("sts", "service-2") == BOTOCORE.load_service_model("sts", "service-2")
    for kind in ("paginators-1", "waiters-2", "endpoint-rule-set-1"):
        assert OURS.load_service_model("dynamodb", kind) == BOTOCORE.load_service_model("dynamodb", kind)
    for name in ("partitions", "sdk-default-configuration", "_retry"):
        assert OURS.load_data(name) == BOTOCORE.load_data(name)
    with pytest.raises(UnknownServiceError):
        OURS.load_service_model("nosuchservice", "service-2")


def test_a_runtime_with_a_later_version_of_an_api_uses_its_own(tmp_path, monkeypatch) -> None:
    later = tmp_path / "sqs" / "2099-01-01" / "service-2.json"
    later.parent.mkdir(parents=True)
    later.write_text('{"metadata": {"apiVersion": "2099-01-01"}}')
    monkeypatch.setattr(Loader, "BUILTIN_DATA_PATH", str(tmp_path))
    assert aws.OwnDataFirst().load_service_model("sqs", "service-2")["metadata"]["apiVersion"] == "2099-01-01"
