"""One file per directive or analysis; ``t2s.spatial.pipeline`` puts them in order."""
