"""Edits: planned on `ast` (`Plan`), carried out on libcst's tree (`migrate.edits.apply`, imported on demand)."""

from __future__ import annotations

from migrate.edits.edit import Conflict, Edit, Refusal
from migrate.edits.editable import EditableFile, PlannedFile
from migrate.edits.parts import (
    ARGUMENTS,
    BODY,
    FUNCTION,
    ITSELF,
    LEFT,
    ORELSE,
    RECEIVER,
    RIGHT,
    TEST,
    VALUE,
    Selector,
    argument,
)
from migrate.edits.plan import Plan

__all__ = [
    "ARGUMENTS",
    "BODY",
    "FUNCTION",
    "ITSELF",
    "LEFT",
    "ORELSE",
    "RECEIVER",
    "RIGHT",
    "TEST",
    "VALUE",
    "Conflict",
    "Edit",
    "EditableFile",
    "Plan",
    "PlannedFile",
    "Refusal",
    "Selector",
    "argument",
]
