"""The report as one page for a reviewer: it opens from the disk, without a network, with or without scripts.

| file | |
|---|---|
| `page.py` | the document, and which parts it has |
| `markup.py` | escaped text and elements; everything that comes from outside goes through it |
| `overview.py` | what happened, in numbers; programs with their maps |
| `layout.py`, `chart.py` | where the boxes of a map lie, and the drawing |
| `findings.py` | what is left, and how to do it by hand; what the rules do |
| `files.py`, `rows.py` | files side by side, and their rows |
| `align.py`, `syntax.py` | which lines belong together, and what of them differs; colours of code |
| `verification.py`, `curves.py` | what `--verify` found |
| `style.py`, `sheet.py`, `script.py` | how it looks, in light and dark; keys and the switch |
"""

from migrate.report.html.page import is_ours, page

__all__ = ["is_ours", "page"]
