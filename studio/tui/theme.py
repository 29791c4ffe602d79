"""Colours of the terminal UI: one accent for "here", one colour per kind of lane, amber for waiting, red and green for a diff.

`defaults` gives the studio's own variables a meaning under Textual's other themes.
"""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="studio-dark",
    primary="#8b9dff",
    secondary="#4fd1c5",
    accent="#8b9dff",
    warning="#f0b847",
    error="#ef7d86",
    success="#63d297",
    foreground="#dfe3ee",
    background="#0e1016",
    surface="#13161e",
    panel="#1b1f2a",
    boost="#ffffff08",
    dark=True,
    variables={
        "lane-main": "#8b9dff",
        "lane-sub": "#4fd1c5",
        "lane-fork": "#f2a15f",
        "wait": "#f0b847",
        "line": "#2b3040",
        "faint": "#6b7386",
        "quiet": "#98a0b3",
        "here": "#20263f",
        "here-dim": "#191d29",
        "chip": "#1f2431",
        "old": "#f0959c",
        "old-ground": "#3a1c22",
        "new": "#7fe0ac",
        "new-ground": "#143020",
        "block-cursor-background": "#20263f",
        "block-cursor-foreground": "#dfe3ee",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#191d29",
        "block-cursor-blurred-foreground": "#dfe3ee",
        "block-hover-background": "#191d29",
        "border": "#8b9dff",
        "border-blurred": "#2b3040",
        "scrollbar": "#2b3040",
        "scrollbar-hover": "#3b4258",
        "scrollbar-active": "#8b9dff",
        "scrollbar-background": "#13161e",
        "scrollbar-background-hover": "#13161e",
        "scrollbar-background-active": "#13161e",
        "scrollbar-corner-color": "#13161e",
        "input-selection-background": "#8b9dff 30%",
    },
)

LIGHT = Theme(
    name="studio-light",
    primary="#4353d9",
    secondary="#0b7f76",
    accent="#4353d9",
    warning="#9a6400",
    error="#c02f3c",
    success="#1d7a47",
    foreground="#1c2130",
    background="#f1f3f8",
    surface="#ffffff",
    panel="#e9ecf4",
    boost="#00000008",
    dark=False,
    variables={
        "lane-main": "#4353d9",
        "lane-sub": "#0b7f76",
        "lane-fork": "#b3580b",
        "wait": "#9a6400",
        "line": "#d3d8e4",
        "faint": "#7c849a",
        "quiet": "#596178",
        "here": "#e3e7ff",
        "here-dim": "#eef0f7",
        "chip": "#eceff6",
        "old": "#a31f2c",
        "old-ground": "#fde6e8",
        "new": "#14693a",
        "new-ground": "#dff5e7",
        "block-cursor-background": "#e3e7ff",
        "block-cursor-foreground": "#1c2130",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#eef0f7",
        "block-cursor-blurred-foreground": "#1c2130",
        "block-hover-background": "#eef0f7",
        "border": "#4353d9",
        "border-blurred": "#d3d8e4",
        "scrollbar": "#d3d8e4",
        "scrollbar-hover": "#b9c0d2",
        "scrollbar-active": "#4353d9",
        "scrollbar-background": "#ffffff",
        "scrollbar-background-hover": "#ffffff",
        "scrollbar-background-active": "#ffffff",
        "scrollbar-corner-color": "#ffffff",
        "input-selection-background": "#4353d9 25%",
    },
)

_OWN = (
    "lane-main",
    "lane-sub",
    "lane-fork",
    "wait",
    "line",
    "faint",
    "quiet",
    "here",
    "here-dim",
    "chip",
    "old",
    "old-ground",
    "new",
    "new-ground",
)


def defaults(dark: bool) -> dict[str, str]:
    """Values of the studio's own variables for themes that do not know them."""
    source = (DARK if dark else LIGHT).variables
    return {name: source[name] for name in _OWN}
