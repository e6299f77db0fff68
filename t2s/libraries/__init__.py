"""External functions of libraries: descriptions, loading, calling, and tests of their claims."""
