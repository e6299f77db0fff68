"""External functions of libraries, and how functions are found, called, run and checked."""
