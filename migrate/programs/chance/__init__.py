"""What a program draws at random: its generators, their seeds, and the data and games that come of it."""
