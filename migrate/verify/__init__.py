"""`migrate --verify`: the original and the converted program are run, and what they do is compared."""
