"""``python -m t2s``."""

from t2s.command.start import main

main()
