"""Many runs instead of one: fitting channel depths, and independent designs on all cores."""
