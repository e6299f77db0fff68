"""Plans: the steps in which an assignment is computed, by external functions and by our loops."""
