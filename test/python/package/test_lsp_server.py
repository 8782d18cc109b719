"""Tests of a session of an editor with kvcache-lsp-server."""

import json
import queue
import subprocess
import threading

import pytest
from edits import edit
from places import OPT

SERVER = OPT.with_name("kvcache-lsp-server")
URI = "file:///kernel.mlir"
SECONDS = 30

SOURCE = """\
#kv = #kvcache.params<num_heads = 8, head_size = 128>
!cache = !kvcache.paged<bf16, #kv, page_size = 64>

func.func @first(%keys: !cache, %b: index) -> index {
  %length = kvcache.cache_length %keys[%b] : !cache
  return %length : index
}
"""


class Editor:
    """The client's side of the Language Server Protocol, version 3.17."""

    def __init__(self):
        pipe = subprocess.PIPE
        self._server = subprocess.Popen([SERVER], stdin=pipe, stdout=pipe, stderr=pipe)
        self._messages = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._requests = 0
        self.capabilities = self.request("initialize", capabilities={})["capabilities"]
        self.notify("initialized")

    def _read(self):
        # "Content-Length: N", perhaps other headers, an empty line, N bytes.
        for line in self._server.stdout:
            name, _, value = line.decode().partition(":")
            if name == "Content-Length":
                size = int(value)
            elif not line.strip():
                self._messages.put(json.loads(self._server.stdout.read(size)))

    def _send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._server.stdin.flush()

    def _wait(self, is_wanted):
        while True:
            message = self._messages.get(timeout=SECONDS)
            if is_wanted(message):
                return message

    def notify(self, method, **params):
        self._send(method=method, params=params)

    def request(self, method, **params):
        self._requests += 1
        self._send(id=self._requests, method=method, params=params)
        return self._wait(lambda m: m.get("id") == self._requests)["result"]

    def open(self, text):
        """Opens a document, and returns its diagnostics."""
        document = {"uri": URI, "languageId": "mlir", "version": 1, "text": text}
        self.notify("textDocument/didOpen", textDocument=document)
        return self._wait_for_diagnostics()

    def change(self, text):
        """Replaces all of the document, and returns its diagnostics."""
        document = {"uri": URI, "version": 2}
        changes = [{"text": text}]
        self.notify("textDocument/didChange", textDocument=document, contentChanges=changes)
        return self._wait_for_diagnostics()

    def _wait_for_diagnostics(self):
        published = "textDocument/publishDiagnostics"
        return self._wait(lambda m: m.get("method") == published)["params"]["diagnostics"]

    def ask(self, what, line, character):
        """Sends a request about a place, counted from 0."""
        position = {"line": line, "character": character}
        return self.request(
            f"textDocument/{what}", textDocument={"uri": URI}, position=position
        )

    def close(self):
        self.request("shutdown")
        self.notify("exit")
        return self._server.wait(SECONDS)


@pytest.fixture
def editor():
    editor = Editor()
    yield editor
    assert editor.close() == 0


def get_place(text, what):
    """The line and the character of the first ``what``, counted from 0."""
    before = text[: text.index(what)]
    return before.count("\n"), len(before) - before.rfind("\n") - 1


def test_type_error_has_its_range(editor):
    wrong = edit(SOURCE, ("!cache, %b", "index, %b"), (": !cache", ": index"))
    (diagnostic,) = editor.open(wrong)
    line, _ = get_place(wrong, "kvcache.cache_length")
    assert diagnostic["range"]["start"]["line"] == line
    assert diagnostic["severity"] == 1  # an error
    assert "'kvcache.cache_length' op operand #0 must be" in diagnostic["message"]


def test_wrong_type_of_a_value_has_its_range(editor):
    wrong = edit(SOURCE, ("[%b] : !cache", "[%b] : !kvcache.token"))
    (diagnostic,) = editor.open(wrong)
    line, _ = get_place(wrong, "[%b] : !kvcache.token")
    assert diagnostic["range"]["start"]["line"] == line
    assert "use of value '%keys' expects different type" in diagnostic["message"]


def test_error_of_a_type_has_its_range(editor):
    wrong = edit(SOURCE, ("page_size = 64", "page_size = 0"))
    diagnostics = editor.open(wrong)
    line, _ = get_place(wrong, "page_size = 0")
    (message,) = [
        diagnostic["message"]
        for diagnostic in diagnostics
        if diagnostic["range"]["start"]["line"] == line
    ]
    assert "expects page_size to be positive, got 0" in message


def test_wrong_layout_has_its_range(editor):
    assert editor.open(edit(SOURCE, ("page_size = 64", "page_size = 64, layout = hnd"))) == []
    wrong = edit(SOURCE, ("page_size = 64", "page_size = 64, layout = [token = 64, head = 8192]"))
    messages = {
        diagnostic["message"]: diagnostic["range"]["start"]["line"]
        for diagnostic in editor.change(wrong)
    }
    (line,) = [
        line
        for message, line in messages.items()
        if "token stride of layout to be at least a head" in message
    ]
    assert line == get_place(wrong, "layout")[0]


@pytest.mark.parametrize("start, opening", [("", "module {"), ("!t = ", "tuple<")])
def test_a_deep_source_leaves_the_server_running(editor, start, opening):
    assert editor.open(start + opening * 20_000)
    assert editor.change(SOURCE) == []


def test_fixed_error_disappears(editor):
    assert editor.open(edit(SOURCE, ("%length : index", "%length : i32")))
    assert editor.change(SOURCE) == []


def test_hover_on_a_value_shows_its_operation(editor):
    assert editor.open(SOURCE) == []
    shown = editor.ask("hover", *get_place(SOURCE, "%length = "))
    assert "kvcache.cache_length" in shown["contents"]["value"]


def test_a_use_leads_to_its_definition(editor):
    assert editor.capabilities["definitionProvider"]
    assert editor.open(SOURCE) == []
    line, character = get_place(SOURCE, "return %length")
    (found,) = editor.ask("definition", line, character + len("return %"))
    start = found["range"]["start"]
    assert (start["line"], start["character"]) == get_place(SOURCE, "%length = ")


@pytest.mark.parametrize("line_break", ["\n", ""])
def test_hover_on_an_op_shows_its_documentation(editor, line_break):
    """Tests places after characters of one, two and three code units of UTF-16 and UTF-8."""
    text = edit(SOURCE, ("@first", '@"å 𝔸"'), ("index {\n", "index {" + line_break))
    assert editor.open(text) == []
    line, character = get_place(text, "cache_length %keys")
    if not line_break:
        character += 1
    shown = editor.ask("hover", line, character)["contents"]["value"]
    assert shown.startswith("`kvcache.cache_length`: _")
    assert "Syntax:" in shown and "Generic Form:" in shown and "#### Operands" not in shown
    assert "Syntax:" not in editor.ask("hover", *get_place(text, "return %"))["contents"]["value"]


def test_names_of_ops_come_with_their_documentation(editor):
    text = edit(SOURCE, ("  return", "  kvcache.\n  return"))
    assert editor.open(text)
    line, character = get_place(text, "kvcache.\n")
    items = editor.ask("completion", line, character + len("kvcache."))["items"]
    shown = {item["label"]: item["documentation"] for item in items}
    assert len(shown) > 70
    assert all(
        text["kind"] == "markdown" and "Syntax:" in text["value"] for text in shown.values()
    )
    assert "rounding to nearest even" in shown["load"]["value"]


def test_disconnected_client_ends_the_server():
    server = subprocess.run([SERVER], input=b"", capture_output=True, timeout=SECONDS)
    assert server.returncode == 1 and server.stdout == b""
    wrong = subprocess.run(
        [SERVER], input=b"Content-Length: 99\r\n\r\n{", capture_output=True, timeout=SECONDS
    )
    assert wrong.returncode == 1
