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
