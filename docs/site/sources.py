"""Pages of the repository's files that pages of the documentation link to."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path

from page_examples import ROOT

EMULATOR = sorted((ROOT / "emulator" / "docs").glob("*.md"))
# Pages that lie elsewhere in the repository than in docs.
MOVED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/gpu/README.md": "benchmarks-gpu.md",
    "emulator/README.md": "emulator/index.md",
    **{f"emulator/docs/{path.name}": f"emulator/{path.name}" for path in EMULATOR},
}
_ORIGIN = {page: path for path, page in MOVED.items()}
_LANGUAGES = {
    ".cpp": "c++",
    ".cu": "cuda",
    ".h": "c++",
    ".mlir": "mlir",
    ".py": "python",
    ".td": "tablegen",
}
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"^( *)```.*?^ *```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def page_of(path: str) -> str:
    """The place in the site of a file or folder of the repository."""
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/") and not path.startswith("docs/site"):
        return path.removeprefix("docs/")
    suffix = "/index.md" if (ROOT / path).is_dir() else ".md"
    return f"source/{path}{suffix}"


def targets(text: str, page: str) -> list[tuple[re.Match[str], str]]:
    """The links of a page to files of the repository, with their paths in it."""
    if page.startswith("reference/"):
        return []
    folder = posixpath.dirname(_ORIGIN.get(page, f"docs/{page}"))
    found = []
    code = [range(*match.span()) for match in _CODE.finditer(text)]
    for match in _LINK.finditer(text):
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        is_code = any(match.start() in block for block in code)
        if not is_code and (ROOT / path).exists() and not path.startswith(".."):
            found.append((match, path))
    return found


def with_links_of_site(text: str, page: str) -> str:
    """A page whose links to files of the repository lead to the pages of these."""
    for match, path in reversed(targets(text, page)):
        link = posixpath.relpath(page_of(path), posixpath.dirname(page) or ".")
        replacement = f"{match[1]}{link}{match[3] or ''}{match[4]}"
        text = text[: match.start()] + replacement + text[match.end() :]
    return text


def pages(texts: dict[str, str]) -> dict[str, str]:
    """The pages of all files that the given pages link to, and of those in folders."""
    paths = {path for page, text in texts.items() for _, path in targets(text, page)}
    folders = {path for path in paths if (ROOT / path).is_dir()}
    for folder in folders:
        paths |= {f"{folder}/{file.name}" for file in _files_of(ROOT / folder)}
    paths = {path for path in paths if page_of(path).startswith("source/")}
    return {page_of(path): _page(path) for path in sorted(paths)}


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def _page(path: str) -> str:
    file = ROOT / path
    if file.is_dir():
        names = [f"- [{entry.name}]({entry.name}.md)" for entry in _files_of(file)]
        body = "\n".join(names)
    elif file.suffix == ".ipynb":
        body = _notebook(json.loads(file.read_text()))
    else:
        language = _LANGUAGES.get(file.suffix, "text")
        body = f"````{language}\n{file.read_text()}````"
    return f"---\nsearch: {{exclude: true}}\n---\n\n# {path}\n\n{body}\n"


def _notebook(notebook: dict) -> str:
    """The cells of a notebook, with the pictures that they have drawn."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        # The page has a title already.
        source = (
            re.sub(r"^#", "##", source) if cell["cell_type"] == "markdown" else source
        )
        is_code = cell["cell_type"] == "code"
        parts.append(f"```python\n{source}\n```" if is_code else source)
        for output in cell.get("outputs", []):
            picture = "".join(output["data"]["image/svg+xml"]).replace("\n", " ")
            parts.append(f"<div>{picture}</div>")
    return "\n\n".join(parts)
