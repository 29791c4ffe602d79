"""What a run needs to know before and while it runs: the parts behind `studio.runs`."""
