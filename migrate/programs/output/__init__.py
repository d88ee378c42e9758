"""What a program says and writes, and who reads it again."""
