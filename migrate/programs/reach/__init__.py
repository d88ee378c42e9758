"""Which code runs, from which file it is entered, and how often."""
