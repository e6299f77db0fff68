"""The kernels of the native engine that compute times, without values."""
