"""Notebooks: a JSON file of cells, which the rest of the program sees as one module of Python.

from migrate.source.notebook import Notebook, read
"""

from migrate.source.notebook.notebook import CellChange, Notebook, read

__all__ = ["CellChange", "Notebook", "read"]
