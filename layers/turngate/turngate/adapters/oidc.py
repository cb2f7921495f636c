"""JWTs of an OIDC issuer, by PyJWT: signature by the issuer's published keys, issuer, audience and expiry."""

from __future__ import annotations

from typing import Any

import jwt

from turngate.errors import RefusedError, TransientError

_ALGORITHMS = ("RS256", "ES256")
_JWKS_TIMEOUT_S = 2


class OidcTokenVerifier:
    """`jwks_url` defaults to the issuer's well-known address. Keys are cached between calls of a warm function.

    Cognito's access tokens carry `client_id` instead of `aud`, so the audience is compared with whichever is there;
    the account's claim is on its ID tokens."""

    def __init__(self, *, issuer: str, audience: str, jwks_url: str | None = None) -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys = jwt.PyJWKClient(
            jwks_url or f"{issuer.rstrip('/')}/.well-known/jwks.json", timeout=_JWKS_TIMEOUT_S
        )

    def claims(self, token: str) -> dict[str, Any]:
        try:
            key = self._keys.get_signing_key_from_jwt(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                issuer=self._issuer,
                options={"require": ["exp", "iss", "sub"], "verify_aud": False},
            )
        except (
            jwt.PyJWKClientConnectionError
        ) as error:  # their keys cannot be had: nothing is known of the token
            raise TransientError("the issuer's keys cannot be read") from error
        except jwt.PyJWTError as error:
            raise RefusedError("unauthorized") from error
        audience = claims.get("aud", claims.get("client_id"))
        if self._audience not in (audience if isinstance(audience, list) else [audience]):
            raise RefusedError("unauthorized")
        return claims
