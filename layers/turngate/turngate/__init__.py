"""Turngate: every chat turn passes a gate. A model may understand and phrase; code decides, executes and commits."""

__version__ = "0.1.0"
