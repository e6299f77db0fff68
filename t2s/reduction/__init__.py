"""How a reduction is carried out, in registers or from PE to PE."""
