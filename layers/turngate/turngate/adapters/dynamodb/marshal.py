"""Items and conditions in DynamoDB's own words. Small on purpose: boto3's serializer would cost boto3's import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turngate.domain.transaction import Absent, AtLeast, AtMost, Equals, Exists, OneOf
from turngate.errors import BrokenInvariantError

if TYPE_CHECKING:
    from turngate.domain.transaction import Condition, Item, Term

AttributeValue = dict[str, Any]


def to_value(value: Any) -> AttributeValue:  # noqa: ANN401 - DynamoDB's value type is open by nature
    """One typed attribute value. Floats are refused: DynamoDB has none, and money must not be rounded."""
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case None:
            return {"NULL": True}
        case bytes():
            return {"B": value}
        case list() | tuple():
            return {"L": [to_value(each) for each in value]}
        case dict():
            return {"M": {name: to_value(each) for name, each in value.items()}}
    raise BrokenInvariantError(f"no DynamoDB type for {type(value).__name__}")


def from_value(value: AttributeValue) -> Any:  # noqa: ANN401 - see to_value
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return int(content)
        case "NULL":
            return None
        case "L":
            return [from_value(each) for each in content]
        case "M":
            return {name: from_value(each) for name, each in content.items()}
        case _:
            return content


def to_attributes(item: Item) -> dict[str, AttributeValue]:
    return {name: to_value(value) for name, value in item.items()}


def from_attributes(attributes: dict[str, AttributeValue]) -> Item:
    """The item without its key; `sk` is kept under that name when the caller wants it."""
    return {name: from_value(value) for name, value in attributes.items() if name not in {"PK", "SK"}}


class Expression:
    """Collects placeholders while conditions and updates are rendered, so no name or value is ever spliced in."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, AttributeValue] = {}

    def name(self, attribute: str) -> str:
        placeholder = f"#{attribute}"
        self.names[placeholder] = attribute
        return placeholder

    def value(self, value: Any) -> str:  # noqa: ANN401 - see to_value
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = to_value(value)
        return placeholder

    def condition(self, condition: Condition) -> str:
        return " AND ".join(self._term(term) for term in condition)

    def _term(self, term: Term) -> str:
        match term:
            case Exists():
                return f"attribute_exists({self.name('PK')})"
            case Absent(name=name):
                return f"attribute_not_exists({self.name(name or 'PK')})"
            case Equals(name=name, value=value):
                return f"{self.name(name)} = {self.value(value)}"
            case OneOf(name=name, values=values):
                return f"{self.name(name)} IN ({', '.join(self.value(each) for each in values)})"
            case AtMost(name=name, value=bound):
                return f"{self.name(name)} <= {self.value(bound)}"
            case AtLeast(name=name, value=bound):
                return f"{self.name(name)} >= {self.value(bound)}"

    def update(self, changes: Item, removed: tuple[str, ...]) -> str:
        clauses = []
        if changes:
            pairs = (f"{self.name(name)} = {self.value(value)}" for name, value in changes.items())
            clauses.append(f"SET {', '.join(pairs)}")
        if removed:
            clauses.append(f"REMOVE {', '.join(self.name(name) for name in removed)}")
        return " ".join(clauses)
