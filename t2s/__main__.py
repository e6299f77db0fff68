"""``python -m t2s``."""

from t2s.cli import main

main()
