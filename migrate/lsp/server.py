"""The protocol: what is found as diagnostics, the conversion as a code action.

Diagnostics are those of the text as the editor has it, a moment after the last key. A conversion is computed when the
editor asks for the edit of an action, not each time that it asks which actions there are.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from migrate import __version__
from migrate.errors import MigrateError
from migrate.lsp.program import BOM, converted, found
from migrate.report.model import Kind
from migrate.report.pieces import pieces
from migrate.report.place import region
from migrate.report.severity import Severity, severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pygls.workspace import TextDocument

    from migrate.report.model import Change, Finding, Report

DELAY_S = 0.4  # after the last key
TITLE = "Convert this training loop"
KIND = types.CodeActionKind.RefactorRewrite
SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


class Server(LanguageServer):
    """The server, with the lines from which a conversion can be asked for: by document, first and last, 0-based."""

    def __init__(self) -> None:
        # Changes come as whole texts: what pygls takes for the ends of lines (form feeds, U+2028) is more than what
        # editors do, so a part of a text would be put in another place.
        super().__init__("migrate", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.places: dict[str, list[tuple[int, int]]] = {}

    @property
    def documents(self) -> Sequence[TextDocument]:
        """What the editor has open; the workspace's own keys are no URIs: blanks and such are not escaped in them."""
        return list(self.workspace.text_documents.values())

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts that the editor has open, by path."""
        return {path: each.source for each in self.documents if (path := _path(each.uri)) is not None}

    def document(self, uri: str) -> TextDocument | None:
        """An open document."""
        return next((each for each in self.documents if each.uri == uri), None)

    def units(self, text: str) -> int:
        """How long a text is, as the editor counts."""
        return int(self.workspace.position_codec.client_num_units(text))

    def say(self, error: MigrateError) -> None:
        """Tell why nothing is shown."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"migrate: {error}"))


SERVER = Server()


def _path(uri: str) -> str | None:
    """The path of a Python file; None of another document."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return path if path is not None and path.endswith((".py", ".pyw")) else None


# --- diagnostics ----------------------------------------------------------------------------------------------------


@SERVER.feature(types.TEXT_DOCUMENT_DID_OPEN)
def opened(server: Server, params: types.DidOpenTextDocumentParams) -> None:
    """A document was opened."""
    show(server, params.text_document.uri)


@SERVER.feature(types.TEXT_DOCUMENT_DID_SAVE)
def saved(server: Server, params: types.DidSaveTextDocumentParams) -> None:
    """A document was saved: others may import it."""
    for document in server.documents:
        show(server, document.uri)


@SERVER.feature(types.TEXT_DOCUMENT_DID_CHANGE)
async def changed(server: Server, params: types.DidChangeTextDocumentParams) -> None:
    """A document was changed; whoever goes on typing is not waited for."""
    uri = params.text_document.uri
    await asyncio.sleep(DELAY_S)
    document = server.document(uri)
    if document is not None and document.version == params.text_document.version:
        show(server, uri)


@SERVER.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def closed(server: Server, params: types.DidCloseTextDocumentParams) -> None:
    """A document was closed."""
    wipe(server, params.text_document.uri)


def show(server: Server, uri: str) -> None:
    """Publish what is found in a document."""
    path, document = _path(uri), server.document(uri)
    if path is None or document is None:
        return
    try:
        shown = found(path, server.texts)
    except MigrateError as error:
        server.say(error)
        wipe(server, uri)
        return
    server.places[uri] = [(first - 1, last - 1) for first, last in shown.convertible]
    told = [_diagnostic(server, finding, shown.report) for finding in shown.findings]
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, told, document.version))


def wipe(server: Server, uri: str) -> None:
    """Take back what was published of a document."""
    server.places.pop(uri, None)
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def _diagnostic(server: Server, finding: Finding, report: Report) -> types.Diagnostic:
    where = region(finding, report)
    start, end = (server.units(where.text[: column - 1]) for column in (where.column, where.end_column))
    line = where.line - 1
    return types.Diagnostic(
        range=types.Range(types.Position(line, start), types.Position(line, end)),
        message=f"{finding.message}\n{finding.hint}" if finding.hint else finding.message,
        severity=SEVERITIES[severity(finding)],
        code=finding.code,
        source="migrate",
    )


# --- the conversion -------------------------------------------------------------------------------------------------


@SERVER.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([KIND], resolve_provider=True))
def actions(server: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    """The conversion, where the cursor is in a loop that can be, or where the program enters one."""
    uri, only = params.text_document.uri, params.context.only
    first, last = params.range.start.line, params.range.end.line
    is_wanted = only is None or any(KIND.value == kind or KIND.value.startswith(f"{kind}.") for kind in only)
    if not is_wanted or not any(start <= last and first <= end for start, end in server.places.get(uri, ())):
        return []
    action = types.CodeAction(TITLE, KIND, data={"uri": uri})
    asks = server.client_capabilities.text_document
    can_wait = asks and asks.code_action and asks.code_action.resolve_support
    return [action if can_wait else resolved(server, action)]


@SERVER.feature(types.CODE_ACTION_RESOLVE)
def resolved(server: Server, action: types.CodeAction) -> types.CodeAction:
    """The action with its edit: the whole conversion, in all files that it changes."""
    data = action.data
    uri = data["uri"] if isinstance(data, dict) else ""
    path = _path(uri)
    if path is None or server.document(uri) is None:
        return action  # it was closed meanwhile
    try:
        changes, report = converted(path, server.texts)
    except MigrateError as error:
        server.say(error)
        return action
    if changes:
        action.edit = _edit(server, {_uri(server, real, path, uri): change for real, change in changes})
    else:
        reasons = "; ".join(each.message for each in report.of(Kind.LEFT)) or "nothing is left to convert"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"Not converted: {reasons}"))
    return action


def _uri(server: Server, real: Path, path: str, uri: str) -> str:
    """The document of a file, under the name that the editor has for it."""
    known = {opened: each.uri for each in server.documents if (opened := _path(each.uri)) is not None}
    known[path] = uri
    made = next((each for opened, each in known.items() if _is_same(opened, real)), None)
    return made or from_fs_path(str(real)) or real.as_uri()


def _is_same(opened: str, real: Path) -> bool:
    try:
        return real.samefile(opened)
    except OSError:
        return str(real) == opened


def _edit(server: Server, changes: Mapping[str, Change]) -> types.WorkspaceEdit:
    """The edits of documents; an editor that can sees to it that they are for the text that they were made of."""
    edits = {
        uri: [_text_edit(server, *place) for place in _replaced(change, _hidden(server, uri))]
        for uri, change in changes.items()
    }
    asks = server.client_capabilities.workspace
    if not (asks and asks.workspace_edit and asks.workspace_edit.document_changes):
        return types.WorkspaceEdit(changes=edits)
    versions = {each.uri: each.version for each in server.documents}
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, versions.get(uri)), list(made))
            for uri, made in edits.items()
        ]
    )


def _hidden(server: Server, uri: str) -> str:
    """What a file may begin with and an editor does not count: a byte order mark, but for editors that say it."""
    document = server.document(uri)
    return "" if document is not None and document.source.startswith(BOM) else BOM


def _replaced(change: Change, hidden: str) -> list[tuple[int, int, str, str]]:
    """First and last line (0-based) that are replaced, what stands in the last one, and the new text."""
    return [
        (each.first - 1, each.last - 1, each.old.rpartition("\n")[2].lstrip(hidden), each.text.lstrip(hidden))
        for each in pieces(change)
    ]


def _text_edit(server: Server, first: int, last: int, end: str, text: str) -> types.TextEdit:
    return types.TextEdit(types.Range(types.Position(first, 0), types.Position(last, server.units(end))), text)
