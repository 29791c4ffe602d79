"""Explain: who wrote it, why it ran, what runs next, derived from raw rows without any user code.

`Explainer` is the door. A checkpoint explains itself from format 3 on: its channels and versions say what it schedules, the rows
under it what each task has done, the rows under its parent who changed what. Older formats need one pass over their thread.
"""

from __future__ import annotations

from studio.explain.channels import is_internal
from studio.explain.explainer import Explainer
from studio.explain.ids import interrupt_id, parse_path, task_id

__all__ = ["Explainer", "interrupt_id", "is_internal", "parse_path", "task_id"]
