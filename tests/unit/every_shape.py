"""All shapes of the product, found by loading all of its modules that may define one."""

from __future__ import annotations

import importlib
import pkgutil

import turngate.chat
import turngate.domain
import turngate.states
from turngate.domain.shapes import Frozen


def every_shape() -> list[type[Frozen]]:
    for package in (turngate.domain, turngate.states, turngate.chat):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return [shape for shape in _below(Frozen) if shape.__module__.startswith("turngate.")]


def _below(base: type[Frozen]) -> list[type[Frozen]]:
    return [each for sub in base.__subclasses__() for each in (sub, *_below(sub))]
