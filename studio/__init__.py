"""Checkpoint Studio: a visual time-travel debugger for LangGraph checkpoint databases."""

__version__ = "0.1.0"
