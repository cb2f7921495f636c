"""What the product needs from the outside, in its own words. Each port has one contract suite over all its adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from turngate.domain.knowledge import Found
    from turngate.domain.shapes import Usage
    from turngate.domain.transaction import Item, Key, Transaction


Posted = Literal["delivered", "gone", "refused"]


class ConversationStore(Protocol):
    """The one table. Every call names the account whose keys it may touch; another account's key is a
    BrokenInvariantError before anything is sent (I6). Reads are strongly consistent."""

    def get(self, account: str, keys: Sequence[Key]) -> dict[Key, Item]:
        """The items that exist, of at most 100 keys, as one request."""

    def query(
        self, account: str, pk: str, *, first: str, last: str, limit: int, newest_first: bool = False
    ) -> list[Item]:
        """Items of one partition with first <= sk <= last, in key order, at most `limit`."""

    def write(self, account: str, transaction: Transaction) -> None:
        """Apply all or nothing. One action is written as a plain conditional write.

        Raises ConditionFailedError when a condition did not hold, ContentionError when the table conflicted or
        throttled, TransientError when the outcome is unknown (a lost response)."""

    def put_all(self, account: str, items: Iterable[tuple[Key, Item]]) -> None:
        """Unconditional puts of items nobody else writes (run log, working texts); at most 25, one request."""

    def due(self, shard: int, until: int, limit: int) -> list[Key]:
        """Keys of items whose follow-up is owed by `until` (epoch ms), oldest first; from the due index, which
        may lag. Over all accounts: upkeep only."""


class KnowledgeIndex(Protocol):
    """Searches immutable versions of collections of one account."""

    def search(
        self,
        account: str,
        versions: Mapping[str, int],
        query: str,
        vector: Sequence[float] | None,
        limit: int,
    ) -> Found:
        """Best pieces first over all `versions` (collection → version), ranked as if they stood in one, at most one
        per document clause. `vector` None: words alone. Evidence.ref is `<collection>/<document_id>/<piece>`.

        A version that cannot be read is named, and never replaced by another."""


class Embedder(Protocol):
    """Turns texts into vectors of one model."""

    model: str

    def embed(self, texts: Sequence[str], *, timeout_s: float | None = None) -> list[list[float]]:
        """One unit-length vector a text. `timeout_s` bounds the whole of it; without it, only each request has a bound
        of its own. Raises ModelUnavailableError."""


class ModelClient(Protocol):
    """A chat model that answers one JSON document."""

    def complete_json(
        self, *, system: str, user: str, schema_name: str, schema: Mapping[str, Any], timeout_s: float
    ) -> tuple[dict[str, Any], Usage]:
        """One call, no retries of its own. The answer is a JSON object (fenced or truncated JSON is repaired; it is
        NOT yet checked against `schema`: never trust the model). Raises ModelUnavailableError (`empty` when no
        object can be made of the answer)."""


class EventPusher(Protocol):
    """Posts frames to sockets (API Gateway @connections)."""

    def post(self, connection_id: str, frame: bytes) -> Posted:
        """`gone`: the connection is closed (410). `refused`: this one connection takes nothing now (its client does
        not read, the frame is too large, it is not ours): it resumes from the log. Raises TransientError when
        posting as such does not work."""


class Queue(Protocol):
    """One SQS queue of JSON messages."""

    def send(self, body: Mapping[str, Any]) -> None:
        """Raises TransientError."""


class TurnStarter(Protocol):
    """Starts one execution of the turn machine. At-least-once: BeginTurn decides which one owns the run."""

    def start(self, *, name: str, payload: Mapping[str, Any]) -> None:
        """`name` is at most 80 characters. Raises TransientError."""


class Clock(Protocol):
    def now_ms(self) -> int:
        """Epoch milliseconds, UTC."""

    def sleep_ms(self, ms: float) -> None: ...


class Ids(Protocol):
    def token(self) -> str:
        """256 random bits, URL-safe."""

    def fraction(self) -> float:
        """Uniform in [0, 1): jitter."""


class TokenVerifier(Protocol):
    """Checks a JWT of the configured OIDC issuer."""

    def claims(self, token: str) -> dict[str, Any]:
        """Verified claims. Raises RefusedError `unauthorized` for a token that is forged, expired, or of another
        issuer or audience."""
