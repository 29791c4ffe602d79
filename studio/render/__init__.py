"""Text that every front end shares: the output gate, secrets, summaries of values, word diff, labels."""
