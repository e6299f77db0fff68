"""How the page shows it: functions from a model to a fragment of HTML."""
