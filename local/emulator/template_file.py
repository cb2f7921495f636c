"""Reading CloudFormation YAML: short tags (`!Ref`, `!Sub` …) become their long form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

# what `sam package` uploads, and the property that names it
UPLOADED_PROPERTY = {
    "AWS::Serverless::Function": "CodeUri",
    "AWS::Serverless::LayerVersion": "ContentUri",
    "AWS::Serverless::StateMachine": "DefinitionUri",
}


class _Loader(yaml.SafeLoader):
    """SafeLoader plus CloudFormation's tags; the class keeps them out of other users of SafeLoader."""


def _short_form(loader: _Loader, tag: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    else:
        raise TypeError(f"!{tag} on {node}")
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}


# dates stay text: `2012-10-17` is a policy version and not a day
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_multi_constructor("!", _short_form)


def load_template(file: Path) -> dict[str, Any]:
    """The template (or any YAML of one mapping) as plain data."""
    loaded = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506  # a SafeLoader
    if not isinstance(loaded, dict):
        raise TypeError(f"{file} holds no mapping")
    return loaded
