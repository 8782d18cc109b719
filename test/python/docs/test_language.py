"""The rules of language in CONTRIBUTING.md that a test can check."""

import ast
import io
import re
import subprocess
import tokenize

import pytest
from places import ROOT

# This file has the words itself.
EXCEPTIONS = ("test/python/docs/test_language.py",)

CPP = ("include", "lib", "emulator", "tools", "python/src", "test")
PYTHON = ("python/kvcache", "test/python", "emulator/test", "scripts", "benchmarks", "examples", "docs/site")
FIRST_WORDS = r"(Of|Those|That of|What|The same|As many)\b"
# Words for which docs/glossary.md and the rules of the field have better ones: memory is uninitialized, a thread
# acquires and publishes, threads synchronize or converge, an op is before or after another.
LEFT_WORDS = re.compile(
    r"\b(nobody|somebody|anybody|everybody|knows|learns|tells|told|hides|meets|wants|behind|in front of|comes? to)\b",
    re.I,
)
# Words of attention for which the field has better ones: probs (of a softmax), swapAB, MMA kinds, splits of the keys.
ATTENTION_WORDS = re.compile(r"\b(weigh\w*|swapped|tile unit|parts? of (?:the )?keys)\b", re.I)
ATTENTION_FILES = re.compile(
    r"lib/Transforms/(Attention|AttentionCPU|PlanAttention|TileAttention|WarpAttention|Schedules)/"
    r"|lib/Conversion/LowerFragments/|(include/kvcache|lib)/IR/(Attention|Split|Fragment)|docs/explanation/(attention|fragments|merging)"
)


def list_files(folders, *suffixes):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in suffixes:
                yield name, path


CPP_FILES = dict(list_files(CPP, ".h", ".cpp", ".c"))
PYTHON_FILES = dict(list_files(PYTHON, ".py", ".pyi"))
TABLEGEN_FILES = dict(list_files(("include", "emulator"), ".td"))
MLIR_FILES = dict(list_files(("test", "emulator/test", "examples"), ".mlir"))
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for pattern in ("*.md", "docs/**/*.md", "emulator/**/*.md", "benchmarks/**/*.md", "examples/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
}
KINDS = {"cpp": CPP_FILES, "python": PYTHON_FILES, "mlir": MLIR_FILES, "tablegen": TABLEGEN_FILES, "pages": PAGES}


def find_cpp_names(text):
    """Identifiers of C++ code that begin with a preposition or pronoun."""
    code = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', "", text, flags=re.S)
    return re.findall(r"\b(?:(?:of|those|what)[A-Z]|(?:Of|Those|What)(?=[A-Z]))\w*", code)


def find_python_names(text):
    """Identifiers of Python code that begin with a preposition or pronoun."""
    pattern = re.compile(r"\b_?(?:(?:of|those|what)_|(?:Of|Those|What)[A-Z])\w*")
    if not pattern.search(text):  # tokens take longer
        return []
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    names = (token.string for token in tokens if token.type == tokenize.NAME)
    return list(filter(pattern.match, names))


def find_cpp_comments(text):
    """First lines of doc comments that begin with no verb or noun."""
    return re.findall(rf"(?:^|\n)(?! *///)[^\n]*\n *(/// {FIRST_WORDS}[^\n]*)", text)


def find_docstrings(text):
    """First lines of docstrings, and of `Args:` and `Attributes:` in them, that begin with no verb or noun."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        docstring = ast.get_docstring(node) or ""
        if re.match(FIRST_WORDS, docstring):
            found.append(docstring.splitlines()[0])
        for part in re.split(r"^(?=\w+:$)", docstring, flags=re.M):
            if re.match(r"(Args|Attributes|Returns|Raises):$", part, re.M):
                found += re.findall(rf"^    +\*{{0,2}}\w+(?: \([^)]*\))?: {FIRST_WORDS}.*", part, re.M)
    return found


def find_missing_arguments(text):
    """Functions and classes whose `Args:` names other arguments than they have."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        section = re.search(r"^Args:\n((?:    .*\n?|\n)+)", ast.get_docstring(node) or "", re.M)
        inits = [each for each in node.body if getattr(each, "name", "") == "__init__"]
        function = node if isinstance(node, ast.FunctionDef) else next(iter(inits), None)
        if section and function:
            arguments = [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]
            named = re.findall(r"^    \*{0,2}(\w+)(?: \([^)]*\))?:", section[1], re.M)
            if set(named) != set(arguments) - {"self", "cls"}:
                found.append(node.name)
    return found


def find_left_words(text, left_words=LEFT_WORDS):
    """Words that have a better one: in identifiers, comments, strings and prose."""
    text = re.sub(r'"\s*\n\s*"', "", text)  # a string on two lines
    text = re.sub(r"^\s*(//+|#)", " ", text, flags=re.M)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text)
    return left_words.findall(" ".join(words.split()))


def find_sentences(text, limit=30):
    """Sentences of a page's prose that have more words than the limit."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2 *$", "", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    paragraphs = []
    for block in re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", text):
        if block.strip() and not re.match(r"\s*(\||#|<|!\[)", block):
            paragraphs.append(" ".join(block.split()))
    found = []
    for paragraph in paragraphs:
        paragraph = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", paragraph)
        paragraph = re.sub(r"`[^`]*`", "code", paragraph)
        for sentence in re.split(r"(?<=[.!?:;])\s+", paragraph):
            if len(re.findall(r"[\w'/-]+", sentence)) > limit:
                found.append(sentence)
    return found


def find_long_subjects(limit=72):
    """Subjects of commits after the rule was made, where the history is there."""
    first = "d6acfe3c"
    command = ["git", "-C", ROOT, "log", "--format=%s", f"{first}..HEAD"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        pytest.skip("the history is not there")
    return [subject for subject in result.stdout.splitlines() if len(subject) > limit]


def find_in(files, *checks):
    """Findings of the checks in files, by name."""
    texts = {name: path.read_text() for name, path in files.items()}
    found = {name: [each for check in checks for each in check(text)] for name, text in texts.items()}
    return {name: each for name, each in found.items() if each}


def test_cpp_has_plain_names_and_comments():
    assert find_in(CPP_FILES, find_cpp_names, find_cpp_comments) == {}


def test_python_has_plain_names_and_docstrings():
    assert find_in(PYTHON_FILES, find_python_names, find_docstrings) == {}


def test_package_describes_all_arguments():
    files = {name: path for name, path in PYTHON_FILES.items() if name.startswith("python/kvcache/")}
    assert find_in(files, find_missing_arguments) == {}


def test_pages_have_short_sentences():
    assert find_in(PAGES, find_sentences) == {}


@pytest.mark.parametrize("files", KINDS.values(), ids=KINDS)
def test_files_have_no_left_words(files):
    files = {name: path for name, path in files.items() if name not in EXCEPTIONS}
    assert find_in(files, find_left_words) == {}


def test_attention_has_no_left_words():
    files = {**CPP_FILES, **TABLEGEN_FILES, **PAGES}
    files = {name: path for name, path in files.items() if ATTENTION_FILES.match(name)}
    assert find_in(files, lambda text: find_left_words(text, ATTENTION_WORDS)) == {}


def test_commits_have_short_subjects():
    assert not find_long_subjects()


def test_checks_find_what_they_look_for():
    assert find_cpp_names("int ofLane; // ofRow\nstruct WhatNext {}; int offset, whatever;") == ["ofLane", "WhatNext"]
    assert find_python_names("of_row = those_pages(offset)  # of_x") == ["of_row", "those_pages"]
    assert len(find_cpp_comments("int a;\n/// Of a row.\n/// Those follow.\nint b;\n")) == 1
    assert find_docstrings('def f():\n    """Of it.\n\n    Args:\n        x: Those of y.\n    """') != []
    assert find_missing_arguments('def f(x, *y):\n    """F.\n\n    Args:\n        x: An x.\n    """') == ["f"]
    text = '/// Comes to it in\n/// front of it.\nint isBehind;\nfail("nobo"\n     "dy"); // a met goal'
    assert find_left_words(text) == ["Comes to", "in front of", "Behind", "nobody"]
    text = "/// Parts of\n/// keys.\nbool isSwapped, TileUnit, scaleWeights, unweighed;"
    assert find_left_words(text, ATTENTION_WORDS) == ["Parts of keys", "Swapped", "Tile Unit", "Weights"]
    long = " ".join(["word"] * 31)
    assert find_sentences(f"Short one. {long}.\n\n```\n{long}\n```\n\n| {long} |\n") == [f"{long}."]
