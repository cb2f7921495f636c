"""Refusals in the shape an OpenAI-compatible endpoint uses, so that the product's client maps them as in production."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class RefusedRequestError(Exception):
    """Raised when a request breaks a rule of the API or of this server's two tasks.

    ``status`` is the HTTP status, ``code`` a stable machine word, ``param`` the dotted place in the request.
    """

    message: str
    code: str
    param: str | None = None
    status: int = 400

    def __str__(self) -> str:
        return self.message

    def as_json(self) -> dict[str, dict[str, str | None]]:
        """The error document: ``{"error": {"message", "type", "param", "code"}}``."""
        kind = "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}
