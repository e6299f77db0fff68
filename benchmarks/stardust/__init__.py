"""The experiments of Stardust (papers/000), beside its published numbers."""
