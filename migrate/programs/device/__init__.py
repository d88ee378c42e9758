"""How a program chooses its device, and what lies where."""
