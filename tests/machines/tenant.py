"""The account of the stories: two speakers, three small collections, and tokens somebody else's issuer would sign."""

from __future__ import annotations

from typing import Any, ClassVar

from turngate.domain.knowledge import Document
from turngate.domain.shapes import TenantContext
from turngate.errors import RefusedError

ACCOUNT = "velo"
CUSTOMER = TenantContext(account=ACCOUNT, principal="user:ann", customer="C-1009")
GUEST = TenantContext(account=ACCOUNT, principal="guest:7f")
DOCUMENTS = {
    "sales-kb": [
        Document(
            document_id="returns-zh",
            title="退货规则",
            text="收到车后 7 天内可以退货。退款在 3 个工作日内原路退回。",
            language="zh-CN",
            source="sales/returns",
        ),
        Document(
            document_id="returns-en",
            title="Return policy",
            text="You may return a bike within 7 days. Refunds take 3 working days.",
            language="en",
            source="sales/returns",
        ),
    ],
    "guide-kb": [
        Document(
            document_id="tyres-en",
            title="Changing a tyre",
            text="Use two tyre levers and start at the valve.",
            language="en",
        ),
    ],
    "repair-kb": [
        Document(
            document_id="prices-en",
            title="Repair prices",
            text="A new chain costs 25 euros.",
            language="en",
        ),
    ],
}


class StubVerifier:
    """Knows the claims of the tokens in `known`."""

    known: ClassVar[dict[str, dict[str, Any]]] = {
        "jwt-ann": {"sub": "ann", "custom:account": ACCOUNT, "custom:customer": "C-1009"},
        "jwt-agent": {"sub": "bob", "custom:account": ACCOUNT, "cognito:groups": ["agent", "tea"]},
        "jwt-nowhere": {"sub": "eve"},
        "jwt-odd": {"sub": "eve", "custom:account": f"{ACCOUNT}#C", "groups": "no agent"},
        "jwt-text": {"sub": "eve", "custom:account": ACCOUNT, "groups": "no agent"},
    }

    def claims(self, token: str) -> dict[str, Any]:
        if token not in self.known:
            raise RefusedError("unauthorized")
        return self.known[token]
