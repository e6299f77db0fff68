"""The experiments of [Stardust], beside its published numbers."""
