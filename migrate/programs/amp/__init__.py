"""Mixed precision that a program does by hand."""
