"""Static control: which iterations a PE makes, and what it does with its ports in each of them."""
