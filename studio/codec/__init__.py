"""How stored bytes become inert values and back: the parts behind `studio.value` and `studio.tagged`."""
