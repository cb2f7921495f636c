"""How well the demo model tells the intents of a tenant's config apart, and strangers from all of them.

    .venvs/demo-model/bin/python -m local.demo_model.measure examples/mall/config.json tests/demo_model/out_of_scope.txt

Every example is taken out of the catalogue in turn and asked as a question (leave one out). That is harder than
life: writers make the examples of one intent as different as they can.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from local.demo_model.encoder import SentenceEncoder
from local.demo_model.scoring import Candidate, Catalogue, Encoder, Intent
from local.demo_model.wording import is_mostly_chinese

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.demo_model.encoder import Vectors

_GOOD = 0.6
_BAD = 0.4


class RememberingEncoder:
    """Encodes each text once: the same few hundred texts are compared hundreds of times."""

    def __init__(self, texts: Sequence[str], encoder: Encoder) -> None:
        distinct = list(dict.fromkeys(texts))
        self._known = dict(zip(distinct, encoder.encode(distinct), strict=True))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The remembered vectors of these texts."""
        return np.stack([self._known[text] for text in texts])


def read_intents(config: Path, language: str) -> list[Intent]:
    """The intents of a tenant's config with their names in one language."""
    return [
        Intent(
            id=entry["id"],
            name=entry["name"][language],
            description=entry["description"][language],
            examples=tuple(entry["examples"]),
        )
        for entry in json.loads(config.read_text(encoding="utf-8"))["intents"]
    ]


def leave_one_out(
    intents: Sequence[Intent], encoder: Encoder, language: str
) -> list[tuple[str, list[Candidate]]]:
    """For each example in the language: its intent's id, and the ranking by a catalogue without that example."""
    found = []
    for number, intent in enumerate(intents):
        for example in intent.examples:
            if is_mostly_chinese(example) is not (language == "zh-CN"):
                continue
            rest = list(intents)
            rest[number] = replace(
                intent, examples=tuple(text for text in intent.examples if text != example)
            )
            ranked = Catalogue(rest, encoder).rank(example, encoder.encode([example])[0])
            found.append((intent.id, ranked))
    return found


def main() -> None:
    """Print one line of figures for each language."""
    parser = argparse.ArgumentParser(
        prog="local.demo_model.measure", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("strangers", type=Path, help="questions out of scope, one a line")
    given = parser.parse_args()
    strangers = given.strangers.read_text(encoding="utf-8").splitlines()
    model = SentenceEncoder()
    for language in ("zh-CN", "en"):
        intents = read_intents(given.config, language)
        texts = [text for intent in intents for text in (*intent.headings(), *intent.examples)]
        encoder = RememberingEncoder([*texts, *strangers], model)
        ranks = leave_one_out(intents, encoder, language)
        catalogue = Catalogue(intents, encoder)
        top = np.mean([ranked[0].id == identity for identity, ranked in ranks])
        three = np.mean([identity in {c.id for c in ranked[:3]} for identity, ranked in ranks])
        right = np.array([next(c.score for c in ranked if c.id == identity) for identity, ranked in ranks])
        strange = np.array([catalogue.rank(text, encoder.encode([text])[0])[0].score for text in strangers])
        print(
            f"{language}: {len(ranks)} examples left out, top-1 {top:.3f}, top-3 {three:.3f};"
            f" right intent's score median {np.median(right):.2f}, above {_GOOD}: {np.mean(right > _GOOD):.2f};"
            f" {len(strangers)} strangers: best score mean {strange.mean():.2f}, max {strange.max():.2f},"
            f" below {_BAD}: {np.mean(strange < _BAD):.2f}"
        )


if __name__ == "__main__":
    main()
