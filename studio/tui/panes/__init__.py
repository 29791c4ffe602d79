"""The panes of the centre: each module turns one `Point` into what is drawn."""
