"""What an external function computes, and whether a part of an assignment is that."""
