"""What generated languages have in common: C-like expressions, and identifiers."""
