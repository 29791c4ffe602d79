"""What the templates draw: frozen values with every decision made. All text in them passed the output gate."""
