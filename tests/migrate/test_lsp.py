"""A session with the language server, as an editor has it: over standard input and output."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrate import pipeline
from migrate.options import Mode, Options

pytest.importorskip("pygls", reason="the language server needs pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

ROOT = Path(pipeline.__file__).parent.parent
ENGINE = """# wichtig: größer
def fit(model, loader, optimizer):
    for (x,) in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
"""
SCRIPT = """import torch

from engine import fit

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=4)
for epoch in range(2):
    fit(model, loader, optimizer)
"""
ALONE = SCRIPT.replace("from engine import fit\n\n", "").replace(
    "    fit(model, loader, optimizer)\n",
    "    for (x,) in loader:\n        optimizer.zero_grad()\n        loss = model(x).mean()  # 😀\n"
    "        loss.backward()\n        optimizer.step()\n",
)


#: A program whose first line changes.
SHOWN = f"print(0); {ALONE}"


class Editor:
    """An editor with some documents open."""

    def __init__(self, folder):
        self.folder = folder
        self.client = LanguageClient("editor", "1")
        self.shown = {}
        self.news = asyncio.Event()
        self.messages = []
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda params: self._published(params.uri, params.diagnostics)
        )
        self.client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self._said(params.message))
        self.client.feature(types.WINDOW_LOG_MESSAGE)(lambda params: self._said(params.message))
        self.texts = {}

    def _published(self, uri, diagnostics):
        self.shown[uri] = list(diagnostics)
        self.news.set()

    def _said(self, message):
        self.messages.append(message)
        self.news.set()

    def uri(self, name):
        return (self.folder / name).as_uri()

    async def start(self, *, waits=True):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        await self.client.start_io(sys.executable, "-m", "migrate.lsp", "--stdio", cwd=self.folder, env=environment)
        resolve = types.ClientCodeActionResolveOptions(["edit"]) if waits else None
        asks = types.ClientCapabilities(
            text_document=types.TextDocumentClientCapabilities(
                code_action=types.CodeActionClientCapabilities(resolve_support=resolve)
            ),
            workspace=types.WorkspaceClientCapabilities(
                workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=waits)
            ),
        )
        made = await self.client.initialize_async(types.InitializeParams(asks, root_uri=self.folder.as_uri()))
        self.client.initialized(types.InitializedParams())
        assert made.server_info.name == "migrate"
        self.capabilities = made.capabilities
        assert list(made.capabilities.code_action_provider.code_action_kinds) == ["refactor.rewrite"]

    async def stop(self):
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await asyncio.wait_for(self.client.stop(), 20)

    async def open(self, name, text):
        self.texts[name] = text
        item = types.TextDocumentItem(self.uri(name), types.LanguageKind.Python, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.told(name)

    async def type(self, name, text, version=2):
        self.texts[name] = text
        document = types.VersionedTextDocumentIdentifier(version, self.uri(name))
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    async def told(self, name):
        """The next diagnostics of a document."""
        self.shown.pop(self.uri(name), None)
        while self.uri(name) not in self.shown:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 60)
        return self.shown[self.uri(name)]

    async def actions(self, name, line, only=None):
        here = types.Range(types.Position(line, 0), types.Position(line, 0))
        context = types.CodeActionContext([], only=only)
        document = types.TextDocumentIdentifier(self.uri(name))
        made = await self.client.text_document_code_action_async(types.CodeActionParams(document, here, context))
        return list(made)


def applied(text, edits):
    """A text after edits, whose positions count UTF-16 units."""
    lines = [line.encode("utf-16-le") for line in text.splitlines(keepends=True)]
    for edit in sorted(edits, key=lambda edit: -edit.range.start.line):
        start, end = edit.range.start, edit.range.end
        before, after = lines[start.line][: 2 * start.character], lines[end.line][2 * end.character :]
        lines[start.line : end.line + 1] = [before + edit.new_text.encode("utf-16-le") + after]
    return b"".join(lines).decode("utf-16-le")


def wanted(folder, files):
    """What `migrate` makes of files, by name."""
    for name, text in files.items():
        (folder / name).write_text(text)
    report = pipeline.run([str(folder / name) for name in files], Options(mode=Mode.DIFF))
    made = {Path(change.path).name: change.new.decode() for change in report.changes}
    for name in files:
        (folder / name).unlink()
    return made


def session(work):
    """Run the steps of an editor."""
    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_loop_is_shown_and_converted(tmp_path):
    expected = wanted(tmp_path, {"train.py": ALONE})["train.py"]
    (tmp_path / "train.py").write_text("# what is on the disk is not what counts\n")

    async def work():
        editor = Editor(tmp_path)
        await editor.start()
        (told,) = await editor.open("train.py", ALONE)
        assert (told.code, told.source, told.severity) == ("MIG001", "migrate", types.DiagnosticSeverity.Warning)
        line = ALONE.splitlines()[told.range.start.line]
        assert line[told.range.start.character : told.range.end.character].startswith("for ")
        assert await editor.actions("train.py", 0) == []
        assert await editor.actions("train.py", told.range.start.line, only=["quickfix"]) == []
        inside = told.range.start.line + 2
        (action,) = await editor.actions("train.py", inside, only=["refactor"])
        assert (action.title, action.edit) == ("Convert this training loop", None)
        action = await editor.client.code_action_resolve_async(action)
        (made,) = action.edit.document_changes
        assert (made.text_document.uri, made.text_document.version) == (editor.uri("train.py"), 1)
        assert applied(ALONE, made.edits) == expected
        await editor.type("train.py", expected)
        assert await editor.told("train.py") == []
        assert await editor.actions("train.py", inside) == []
        await editor.stop()

    session(work)
    assert (tmp_path / "train.py").read_text().startswith("# what is on the disk")


def test_a_script_for_windows_is_one_like_any_other(tmp_path):
    async def work():
        editor = Editor(tmp_path)
        await editor.start()
        (told,) = await editor.open("train.pyw", ALONE)
        assert told.code == "MIG001"
        (action,) = await editor.actions("train.pyw", told.range.start.line)
        action = await editor.client.code_action_resolve_async(action)
        assert len(action.edit.document_changes) == 1
        await editor.stop()

    session(work)


def test_a_program_of_two_files_is_converted_whole(tmp_path):
    expected = wanted(tmp_path, {"train.py": SCRIPT, "engine.py": ENGINE})
    assert set(expected) == {"train.py", "engine.py"}
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "engine.py").write_text(ENGINE.replace("loss.backward()", "pass"))

    async def work():
        editor = Editor(tmp_path)
        await editor.start(waits=False)
        assert await editor.open("train.py", SCRIPT) == []  # what it imports does not train
        (told,) = await editor.open("engine.py", ENGINE)  # not saved
        assert told.code == "MIG001"
        document = types.TextDocumentIdentifier(editor.uri("engine.py"))
        editor.client.text_document_did_save(types.DidSaveTextDocumentParams(document))
        (told,) = await editor.told("train.py")
        assert told.code == "MIG907"  # it leads to a loop
        (action,) = await editor.actions("train.py", told.range.start.line)
        assert {uri.rpartition("/")[2] for uri in action.edit.changes} == set(expected)
        for name, text in (("train.py", SCRIPT), ("engine.py", ENGINE)):
            assert applied(text, action.edit.changes[editor.uri(name)]) == expected[name]
        await editor.stop()

    session(work)


@pytest.mark.parametrize("name", ["my train.py", "größer.py", "a%20b.py", "100% #1?.py"])
def test_a_name_that_is_escaped_in_its_uri_is_one_like_any_other(tmp_path, name):
    async def work():
        editor = Editor(tmp_path)
        await editor.start()
        (told,) = await editor.open(name, ALONE)
        assert told.code == "MIG001"
        await editor.type(name, ALONE + "# more\n")
        assert len(await editor.told(name)) == 1
        (action,) = await editor.actions(name, told.range.start.line)
        action = await editor.client.code_action_resolve_async(action)
        (made,) = action.edit.document_changes
        assert (made.text_document.uri, made.text_document.version) == (editor.uri(name), 2)
        document = types.TextDocumentIdentifier(editor.uri(name))
        editor.client.text_document_did_save(types.DidSaveTextDocumentParams(document))
        assert len(await editor.told(name)) == 1
        await editor.stop()

    session(work)


def test_an_editor_that_says_the_byte_order_mark_gets_its_conversion(tmp_path):
    expected = wanted(tmp_path, {"train.py": "\ufeff" + SHOWN})["train.py"]

    async def work():
        editor = Editor(tmp_path)
        await editor.start(waits=False)
        (told,) = await editor.open("train.py", "\ufeff" + SHOWN)
        (action,) = await editor.actions("train.py", told.range.start.line)
        assert applied("\ufeff" + SHOWN, action.edit.changes[editor.uri("train.py")]) == expected
        await editor.stop()

    session(work)


def test_changes_come_as_whole_texts(tmp_path):
    """Lines are not counted alike by editors and by Python: a part of a text would land somewhere else."""

    async def work():
        editor = Editor(tmp_path)
        await editor.start()
        assert editor.capabilities.text_document_sync.change == types.TextDocumentSyncKind.Full
        await editor.open("train.py", ALONE)
        (action,) = await editor.actions("train.py", 7)
        gone = types.TextDocumentIdentifier(editor.uri("train.py"))
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(gone))
        action = await editor.client.code_action_resolve_async(action)  # of what was closed meanwhile
        assert action.edit is None
        await editor.stop()

    session(work)


def test_what_cannot_be_read_is_no_end(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.migrate]\n")

    async def work():
        editor = Editor(tmp_path)
        await editor.start()
        assert await editor.open("train.py", "def (\n") == []  # others say so
        await editor.type("train.py", ALONE)
        assert len(await editor.told("train.py")) == 1
        (tmp_path / "pyproject.toml").write_text("[tool.migrate]\nselct = 1\n")
        await editor.type("train.py", f"{ALONE}# more\n", 3)
        assert await editor.told("train.py") == []  # what was found with other settings may not hold
        while not any("selct" in message for message in editor.messages):
            editor.news.clear()
            await editor.news.wait()
        document = types.TextDocumentIdentifier(editor.uri("train.py"))
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        assert await editor.told("train.py") == []
        await editor.stop()

    session(work)


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--port", 2)])
def test_the_command_says_what_it_is(argument, status):
    command = [sys.executable, "-m", "migrate.lsp", argument]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert "migrate-lsp" in done.stderr


def test_without_pygls_it_says_what_to_install():
    code = "import sys\nsys.modules['pygls'] = sys.modules['lsprotocol'] = None\nsys.argv = ['migrate-lsp']\n"
    code += "from migrate.lsp import main\nmain()\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "torch-migrate[lsp]" in done.stderr
