"""The table of blank lines and comments."""

from __future__ import annotations

import pytest

# source; operations as (name, statement, arguments); result
TABLE = {
    "removed: the larger side remains": (
        "a = 1\n\nb = 2\n\n\nc = 3\n",
        [("remove", "b", {})],
        "a = 1\n\n\nc = 3\n",
    ),
    "removed: tight stays tight": ("a = 1\nb = 2\nc = 3\n", [("remove", "b", {})], "a = 1\nc = 3\n"),
    "two removed": (
        "a = 1\n\nb = 2\n\nc = 3\n\nd = 4\n",
        [("remove", "b", {}), ("remove", "c", {})],
        "a = 1\n\nd = 4\n",
    ),
    "first removed": ("a = 1\n\nb = 2\n", [("remove", "a", {})], "b = 2\n"),
    "first of a block removed": (
        "def f():\n    a = 1\n\n    b = 2\n",
        [("remove", "a", {})],
        "def f():\n    b = 2\n",
    ),
    "last removed": ("a = 1\n\nb = 2\n", [("remove", "b", {})], "a = 1\n"),
    "last of a block removed": (
        "def f():\n    a = 1\n\n    b = 2\n\nc = 3\n",
        [("remove", "b", {})],
        "def f():\n    a = 1\n\nc = 3\n",
    ),
    "comment above moves to the next": (
        "a = 1\n\n# about b\nb = 2\n\nc = 3\n",
        [("remove", "b", {})],
        "a = 1\n\n# about b\n\nc = 3\n",
    ),
    "comment above the last moves to the end": (
        "if x:\n    a = 1\n    # about b\n    b = 2\nc = 3\n",
        [("remove", "b", {})],
        "if x:\n    a = 1\n    # about b\nc = 3\n",
    ),
    "the shebang stays on top": (
        "#!/usr/bin/env python\n\n# about a\na = 1\n\nb = 2\n",
        [("insert_before", "a", {"code": "NEW", "spaced": True})],
        "#!/usr/bin/env python\n\nNEW\n\n# about a\na = 1\n\nb = 2\n",
    ),
    "a licence stays on top": (
        "# licence\na = 1\n",
        [("insert_before", "a", {"code": "NEW"})],
        "# licence\nNEW\na = 1\n",
    ),
    "spaced instead of two lines": (
        "optimizer = O()\n\ndevice = D\nmodel.to(device)\n\nnum_epochs = 3\n",
        [("remove", "device", {}), ("remove", "model", {}), ("insert_after", "model", {"code": "NEW", "spaced": True})],
        "optimizer = O()\n\nNEW\n\nnum_epochs = 3\n",
    ),
    "spaced instead of two lines, planned elsewhere": (
        "optimizer = O()\n\ndevice = D\nmodel.to(device)\n\nnum_epochs = 3\n",
        [
            ("insert_after", "optimizer", {"code": "NEW", "spaced": True}),
            ("remove", "device", {}),
            ("remove", "model", {}),
        ],
        "optimizer = O()\n\nNEW\n\nnum_epochs = 3\n",
    ),
    "spaced instead of two lines, wider": (
        "optimizer = O()\n\ndevice = D\nmodel.to(device)\n\n\nnum_epochs = 3\n",
        [("remove", "device", {}), ("remove", "model", {}), ("insert_after", "model", {"code": "NEW", "spaced": True})],
        "optimizer = O()\n\n\nNEW\n\nnum_epochs = 3\n",
    ),
    "spaced in a gap of one": (
        "import a\n\nx = 1\n",
        [("insert_before", "x", {"code": "NEW", "spaced": True})],
        "import a\n\nNEW\n\nx = 1\n",
    ),
    "spaced in a gap of two": (
        "import a\n\n\nx = 1\n",
        [("insert_before", "x", {"code": "NEW", "spaced": True})],
        "import a\n\nNEW\n\nx = 1\n",
    ),
    "spaced in no gap": (
        "a = 1\nb = 2\n",
        [("insert_before", "b", {"code": "NEW", "spaced": True})],
        "a = 1\n\nNEW\n\nb = 2\n",
    ),
    "spaced before a definition": (
        "import a\n\n\ndef f(): pass\n",
        [("insert_before", "def f", {"code": "NEW", "spaced": True})],
        "import a\n\nNEW\n\n\ndef f(): pass\n",
    ),
    "spaced before a decorated class": (
        "import a\n\n\n@d\nclass C: pass\n",
        [("insert_before", "@d", {"code": "NEW", "spaced": True})],
        "import a\n\nNEW\n\n\n@d\nclass C: pass\n",
    ),
    "spaced after a definition": (
        "def f(): pass\n\n\na = 1\n",
        [("insert_before", "a", {"code": "NEW", "spaced": True})],
        "def f(): pass\n\n\nNEW\n\na = 1\n",
    ),
    "spaced at the beginning of a block": (
        "def f():\n    a = 1\n",
        [("insert_before", "a", {"code": "NEW", "spaced": True})],
        "def f():\n    NEW\n\n    a = 1\n",
    ),
    "spaced at the end of a block": (
        "def f():\n    a = 1\nb = 2\n",
        [("insert_after", "a", {"code": "NEW", "spaced": True})],
        "def f():\n    a = 1\n\n    NEW\nb = 2\n",
    ),
    "spaced above a comment": (
        "a = 1\n\n# about b\nb = 2\n",
        [("insert_before", "b", {"code": "NEW", "spaced": True})],
        "a = 1\n\nNEW\n\n# about b\nb = 2\n",
    ),
    "tight before takes the blank lines": (
        "a = 1\n\n# about b\nb = 2\n",
        [("insert_before", "b", {"code": "NEW"})],
        "a = 1\n\nNEW\n# about b\nb = 2\n",
    ),
    "tight after stands directly below": (
        "a = 1\n\nb = 2\n",
        [("insert_after", "a", {"code": "NEW"})],
        "a = 1\nNEW\n\nb = 2\n",
    ),
    "tight in the place of a removed one": (
        "a = 1\n\nb = 2\nc = 3\n",
        [("remove", "b", {}), ("insert_before", "b", {"code": "NEW"})],
        "a = 1\n\nNEW\nc = 3\n",
    ),
    "several keep the order of planning": (
        "a = 1\nb = 2\n",
        [
            ("insert_after", "a", {"code": "ONE"}),
            ("insert_before", "b", {"code": "THREE"}),
            ("insert_after", "a", {"code": "TWO"}),
            ("insert_before", "b", {"code": "FOUR"}),
        ],
        "a = 1\nONE\nTWO\nTHREE\nFOUR\nb = 2\n",
    ),
    "tight and spaced in one gap": (
        "import a\n\n\nx = 1\n",
        [("insert_after", "import a", {"code": "TIGHT"}), ("insert_before", "x", {"code": "NEW", "spaced": True})],
        "import a\nTIGHT\n\nNEW\n\nx = 1\n",
    ),
    "two spaced in one gap": (
        "import a\n\nx = 1\n",
        [
            ("insert_after", "import a", {"code": "ONE", "spaced": True}),
            ("insert_before", "x", {"code": "TWO", "spaced": True}),
        ],
        "import a\n\nONE\n\nTWO\n\nx = 1\n",
    ),
    "replaced: everything around stays": (
        "a = 1\n\n# about b\nb = 2  # why\n\nc = 3\n",
        [("replace", "b", {"code": "ONE\nTWO"})],
        "a = 1\n\n# about b\nONE  # why\nTWO\n\nc = 3\n",
    ),
    "a footer stays": (
        "def f():\n    a = 1\n    # end of f\n\n\n# about b\nb = 2\n",
        [("insert_after", "a", {"code": "NEW"})],
        "def f():\n    a = 1\n    NEW\n    # end of f\n\n\n# about b\nb = 2\n",
    ),
    "the file's last comment stays last": (
        "a = 1\n\nb = 2\n\n# end\n",
        [("remove", "b", {})],
        "a = 1\n\n# end\n",
    ),
    "a page begins where it began": (
        "a = 1\n\n\f\nb = 2\n\f\n# c\nc = 3\n",
        [("insert_before", "b", {"code": "NEW", "spaced": True}), ("insert_before", "c", {"code": "TWO"})],
        "a = 1\n\n\f\nNEW\n\nb = 2\n\f\nTWO\n# c\nc = 3\n",
    ),
    "no final newline": ("a = 1\nb = 2", [("insert_after", "b", {"code": "NEW"})], "a = 1\nb = 2\nNEW"),
    "several lines": (
        "for a in b:\n  c()\n",
        [("insert_before", "c", {"code": "if x:\n    y()\n\n    z()"})],
        "for a in b:\n  if x:\n    y()\n\n    z()\n  c()\n",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_gap(edit, name):
    source, operations, result = TABLE[name]
    editor = edit(source)
    for operation, stmt, given in operations:
        arguments = dict(given)
        code = [arguments.pop("code")] if "code" in arguments else []
        editor.do(operation, editor.stmt(stmt), *code, **arguments)
    assert editor.text() == result
