"""What a run has to say, and how it is shown."""
