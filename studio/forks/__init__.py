"""Forks of a checkpoint, written as raw rows: no LangGraph, no user code, untouched values byte for byte."""
