"""What is prepared, where, with what arguments, and what was taken from there before."""
