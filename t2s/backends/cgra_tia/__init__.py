"""Assembly for triggered-instruction CGRAs.  Nothing is here yet: there is no ``BACKEND``."""
