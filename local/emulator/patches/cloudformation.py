"""CloudFormation: what SAM writes into a template and ministack's provisioners leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from local.emulator import stock
from local.emulator.patches.http_api_body import expand_http_api_bodies
from local.emulator.patches.registry import PatchContext, patch

if TYPE_CHECKING:
    from local.emulator.stock import Foreign


@patch("http-api-body")
def expand_the_body_of_http_apis(context: PatchContext) -> None:
    """An HTTP API's OpenAPI `Body` becomes routes, integrations and authorizers.

    AWS imports the body that SAM generates from `Events` and `Auth`. Stock ignores it: the API has no routes
    and answers 404 to everything, and its CORS configuration is lost with it.
    """
    translator = stock.foreign_module("samtranslator.translator.transform")
    stock_transform = translator.transform

    def transform(*arguments: Foreign, **options: Foreign) -> Foreign:
        return expand_http_api_bodies(stock_transform(*arguments, **options))

    translator.transform = transform


@patch("http-api-cors")
def write_cors_configuration_as_the_service_reads_it(context: PatchContext) -> None:
    """`CorsConfiguration` of an HTTP API answers a preflight with 204.

    Stock stores the template's PascalCase keys and reads camelCase ones, so every preflight gets 403.
    """
    provisioners = stock.module("services.cloudformation.provisioners")
    handlers = provisioners._RESOURCE_HANDLERS["AWS::ApiGatewayV2::Api"]

    def with_camel_case(properties: dict[str, Any]) -> dict[str, Any]:
        cors = properties.get("CorsConfiguration")
        if not isinstance(cors, dict):
            return properties
        return {**properties, "CorsConfiguration": {k[:1].lower() + k[1:]: v for k, v in cors.items()}}

    stock_create, stock_update = handlers["create"], handlers["update"]

    def create(logical_id: str, properties: dict[str, Any], stack: str) -> Foreign:
        return stock_create(logical_id, with_camel_case(properties), stack)

    def update(
        physical_id: str, old: dict[str, Any], new: dict[str, Any], *rest: Foreign, **named: Foreign
    ) -> Foreign:
        return stock_update(physical_id, with_camel_case(old), with_camel_case(new), *rest, **named)

    handlers["create"], handlers["update"] = create, update


@patch("table-ttl")
def switch_ttl_on_as_the_template_says(context: PatchContext) -> None:
    """`TimeToLiveSpecification` of a table is in force after the deployment.

    Stock accepts the property and leaves TTL disabled.
    """
    handlers = stock.module("services.cloudformation.provisioners")._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]
    dynamodb = stock.module("services.dynamodb")
    stock_create = handlers["create"]

    def create(logical_id: str, properties: dict[str, Any], stack: str) -> Foreign:
        created = stock_create(logical_id, properties, stack)
        wanted = properties.get("TimeToLiveSpecification")
        if wanted:
            enabled = str(wanted.get("Enabled")).lower() == "true"
            specification = {"Enabled": enabled, "AttributeName": wanted.get("AttributeName")}
            dynamodb._update_ttl({"TableName": created[0], "TimeToLiveSpecification": specification})
        return created

    handlers["create"] = create
