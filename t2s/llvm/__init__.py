"""Write LLVM code as text, compile it, and cache the machine code on disk."""
