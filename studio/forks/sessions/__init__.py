"""Forks of agents' sessions: a new file beside the old one that the program which wrote it can go on from."""
