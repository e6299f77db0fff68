"""What passes and the lowering ask about kernels; nothing here changes a program."""
