"""How a checkpoint tree comes about: the parts behind `studio.tree`."""
