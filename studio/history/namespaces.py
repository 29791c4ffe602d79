"""How checkpoint namespaces are written (LangGraph's `NS_SEP`, `NS_END`): `node:task_id`, nested with `|`, `|1` for a later call.

A persistent subgraph has the stable name `node`, without a task id.
"""

from __future__ import annotations


def named_parts(ns: str) -> list[str]:
    """`a:1|b:2|1` -> [`a:1`, `b:2`]: parts that are only a number count the calls of the part before."""
    return [part for part in ns.split("|") if part and not part.isdigit()] if ns else []


def depth(ns: str) -> int:
    """Nesting: 0 for the root, 1 for a subgraph, …"""
    return len(named_parts(ns))


def outer_namespace(ns: str) -> str:
    """The namespace that a subgraph was called from: `a:1|b:2` -> `a:1`."""
    parts = ns.split("|")
    while parts and (not parts[-1] or parts[-1].isdigit()):
        parts.pop()
    return "|".join(parts[:-1])


def enclosing(ns: str) -> list[str]:
    """All that may be namespaces around this one, innermost first; a name with a `|` in it parts where no namespace ends."""
    parts = ns.split("|")
    return ["|".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)] + [""] if ns else []


def ns_task_id(ns: str) -> str | None:
    """Id of the task that ran this subgraph, or None for a persistent one, whose namespace holds no id."""
    parts = named_parts(ns)
    return parts[-1].rsplit(":", 1)[1] if parts and ":" in parts[-1] else None


def ns_node(ns: str) -> str:
    """Name of the node that holds this subgraph."""
    parts = named_parts(ns)
    return parts[-1].rsplit(":", 1)[0] if parts else ""


def static_ns(ns: str) -> str:
    """The namespace without task ids: which graph it is, however often it ran. `a:ID|1|b:ID` -> `a|b`."""
    return "|".join(part.partition(":")[0] for part in ns.split("|") if not part.isdigit()) if ns else ""
