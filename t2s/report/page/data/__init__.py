"""What the page shows, as frozen values: a model for each view, and how it follows from a run."""
