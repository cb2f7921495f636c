"""From the OpenAPI document SAM writes for an HTTP API to the resources ministack can provision."""

from __future__ import annotations

import re
from typing import Any

_INTEGRATION = "x-amazon-apigateway-integration"
_AUTHORIZER = "x-amazon-apigateway-authorizer"
_ANY_METHOD = "x-amazon-apigateway-any-method"
_CORS = "x-amazon-apigateway-cors"

Template = dict[str, Any]


def expand_http_api_bodies(template: Template) -> Template:
    """Replace each HTTP API's `Body` in a transformed template by explicit resources; returns the template.

    Names of the new resources derive from the API's logical id and the order of the document, so that an
    unchanged template updates nothing.
    """
    resources = template.get("Resources", {})
    for api_id, resource in list(resources.items()):
        properties = resource.get("Properties") or {}
        body = properties.get("Body")
        if resource.get("Type") == "AWS::ApiGatewayV2::Api" and isinstance(body, dict):
            resource["Properties"] = _api_properties(api_id, properties, body)
            authorizers = _add_authorizers(resources, api_id, body)
            _add_routes(resources, api_id, body, authorizers)
    return template


def _api_properties(api_id: str, properties: Template, body: Template) -> Template:
    kept = {key: value for key, value in properties.items() if key not in ("Body", "FailOnWarnings")}
    defaults = {"ProtocolType": "HTTP", "Name": body.get("info", {}).get("title", api_id)}
    if _CORS in body:
        defaults["CorsConfiguration"] = dict(body[_CORS])
    return {**defaults, **kept}


def _add_authorizers(resources: Template, api_id: str, body: Template) -> dict[str, tuple[str, str]]:
    """Add the document's authorizers; returns security scheme -> (logical id, AuthorizationType of routes)."""
    added = {}
    schemes = body.get("components", {}).get("securitySchemes") or {}
    for name, scheme in schemes.items():
        described = scheme.get(_AUTHORIZER)
        if not described:
            continue
        logical_id = f"{api_id}Authorizer{re.sub('[^A-Za-z0-9]', '', name)}"
        properties: Template = {
            "ApiId": {"Ref": api_id},
            "Name": name,
            "AuthorizerType": described["type"].upper(),
        }
        for key in (
            "authorizerUri",
            "authorizerPayloadFormatVersion",
            "enableSimpleResponses",
            "authorizerResultTtlInSeconds",
        ):
            if key in described:
                properties[_pascal(key)] = described[key]
        if "authorizerCredentials" in described:
            properties["AuthorizerCredentialsArn"] = described["authorizerCredentials"]
        if source := described.get("identitySource"):
            properties["IdentitySource"] = source.split(",") if isinstance(source, str) else source
        if jwt := described.get("jwtConfiguration"):
            properties["JwtConfiguration"] = {_pascal(key): value for key, value in jwt.items()}
        resources[logical_id] = {"Type": "AWS::ApiGatewayV2::Authorizer", "Properties": properties}
        added[name] = (logical_id, "JWT" if described["type"].lower() == "jwt" else "CUSTOM")
    return added


def _add_routes(
    resources: Template, api_id: str, body: Template, authorizers: dict[str, tuple[str, str]]
) -> None:
    operations = [
        (path, method, operation)
        for path, methods in body.get("paths", {}).items()
        for method, operation in methods.items()
        if isinstance(operation, dict) and _INTEGRATION in operation
    ]
    for number, (path, method, operation) in enumerate(operations, 1):
        integration_id = f"{api_id}Integration{number}"
        resources[integration_id] = _integration(api_id, operation[_INTEGRATION])
        verb = "ANY" if method == _ANY_METHOD else method.upper()
        properties: Template = {
            "ApiId": {"Ref": api_id},
            "RouteKey": "$default" if path == "/$default" else f"{verb} {path}",
            "Target": {"Fn::Join": ["/", ["integrations", {"Ref": integration_id}]]},
        }
        for requirement in operation.get("security", []):
            for name, scopes in requirement.items():
                if name in authorizers:
                    logical_id, kind = authorizers[name]
                    properties |= {"AuthorizerId": {"Ref": logical_id}, "AuthorizationType": kind}
                    if scopes:
                        properties["AuthorizationScopes"] = scopes
        resources[f"{api_id}Route{number}"] = {"Type": "AWS::ApiGatewayV2::Route", "Properties": properties}


def _integration(api_id: str, described: Template) -> Template:
    properties = {
        "ApiId": {"Ref": api_id},
        "IntegrationType": described["type"].upper(),
        "IntegrationUri": described["uri"],
        "PayloadFormatVersion": described.get("payloadFormatVersion", "2.0"),
    }
    if "timeoutInMillis" in described:
        properties["TimeoutInMillis"] = described["timeoutInMillis"]
    return {"Type": "AWS::ApiGatewayV2::Integration", "Properties": properties}


def _pascal(key: str) -> str:
    return key[:1].upper() + key[1:]
