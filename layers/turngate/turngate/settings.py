"""What a function is told by its environment. Read once, by wiring; nothing else looks at the environment."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from turngate.errors import BrokenInvariantError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Settings:
    """One field per environment variable (upper case). A function sets only those it has a right to use; asking
    for another one fails with its name."""

    table_name: str = ""
    events_to_push_url: str = ""
    runs_to_start_url: str = ""
    turn_machine_arn: str = ""
    connections_endpoint: str = ""
    knowledge_bucket: str = ""
    model_base_url: str = ""
    model_name: str = ""
    model_api_key: str = ""
    embedding_base_url: str = ""
    embedding_model: str = ""
    embedding_api_key: str = ""
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_jwks_url: str = ""
    account_claim: str = "custom:account"
    customer_claim: str = "custom:customer"
    public_http_url: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        given = {each.name: environment.get(each.name.upper()) for each in fields(cls)}
        return cls(**{name: value for name, value in given.items() if value})

    def require(self, name: str) -> str:
        value = getattr(self, name)
        if not value:
            raise BrokenInvariantError(f"environment variable {name.upper()} is not set")
        return str(value)
