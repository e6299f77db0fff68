"""Values by plain loop nests: which value a token is, found before anything runs."""
