"""The language of triggered instructions: parsed, printed, checked, encoded and decoded."""
