"""Screens that open over the main one and hand back an answer."""
