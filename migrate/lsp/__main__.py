"""`python -m migrate.lsp`."""

from migrate.lsp import main

main()
