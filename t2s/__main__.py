"""``python -m t2s``."""

from t2s.command.main import main

main()
