"""``python -m t2s``."""

from t2s.command import main

main()
