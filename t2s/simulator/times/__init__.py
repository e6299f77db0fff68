"""The kernels of the native engine that find times, without values."""
