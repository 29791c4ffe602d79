"""Readers: each store turns one kind of location into headers and raw rows."""
