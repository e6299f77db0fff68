"""Write LLVM code as text, compile it, and keep the machine code in a cache on disk."""
