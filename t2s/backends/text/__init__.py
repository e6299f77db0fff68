"""What generated languages have in common: expressions in the manner of C, and identifiers."""
