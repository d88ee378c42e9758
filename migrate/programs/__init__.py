"""Training programs: their loops, objects and home, and every decision about converting them."""
