"""Where numbers and objects come from, what keeps them, and what they count."""
