"""The graphs of the sample threads, as `langgraph.json` names them.

They need `langgraph` alone, and they are compiled without a checkpointer: whoever runs them brings one.
"""

from __future__ import annotations

from research_team import graph as research_team
from support_agent import graph as support_agent

__all__ = ["research_team", "support_agent"]
