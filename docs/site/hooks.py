"""Hooks of MkDocs for this site: generated pages, and links."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import chips
import mlir_lexer
import dialect_reference
import formats
import python_reference
import sources
import versions

_made: dict[str, str] = {}
_PICTURE = re.compile(r'<img [^>]*src="([^"]+\.svg)"[^>]*>')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Makes the pages, and puts those of a folder where the nav names it."""
    mlir_lexer.register()
    written = {
        path.relative_to(config.docs_dir).as_posix(): path.read_text()
        for path in Path(config.docs_dir).rglob("*.md")
    }
    moved = {
        page: (sources.ROOT / path).read_text() for path, page in sources.MOVED.items()
    }
    _made.clear()
    _made.update(moved | dialect_reference.pages() | python_reference.pages() | formats.pages() | chips.pages())
    _made.update(versions.pages())
    _made.update(sources.pages(written | moved))
    config.nav = _with_folders(config.nav, [*_made, *_in_order_of_index(written)])
    return config


def _in_order_of_index(written: dict[str, str]) -> list[str]:
    """The written pages by folder, in the order of the links in the index of their folder."""
    linked = {
        posixpath.join(posixpath.dirname(page), name): None
        for page, text in sorted(written.items())
        if page.endswith("/index.md")
        for name in ("index.md", *re.findall(r"\]\(([\w-]+\.md)\)", text))
    }
    return [*linked, *(page for page in sorted(written) if page not in linked)]


def _with_folders(entry: Any, pages: list[str], named: set[str] | None = None) -> Any:
    """Expands each folder of the nav to its pages, except those that the nav names."""
    named = _pages_in(entry) if named is None else named
    if isinstance(entry, list):
        expanded = (_with_folders(child, pages, named) for child in entry)
        pairs = zip(entry, expanded, strict=True)
        # A folder beside other entries adds its pages to them.
        return [
            page
            for child, new in pairs
            for page in (new if isinstance(child, str) and child != new else [new])
        ]
    if isinstance(entry, dict):
        return {
            title: _with_folders(child, pages, named) for title, child in entry.items()
        }
    if entry.endswith("/"):
        in_folder = (page for page in pages if f"{posixpath.dirname(page)}/" == entry)
        return [page for page in in_folder if page not in named]
    return entry


def _pages_in(entry: Any) -> set[str]:
    """The pages that the nav names."""
    if isinstance(entry, str):
        return {entry}
    children = entry.values() if isinstance(entry, dict) else entry
    return set().union(*map(_pages_in, children))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made."""
    for page, text in _made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Leads links to files of the repository to their pages."""
    return sources.with_links_of_site(markdown, page.file.src_uri)


def on_page_content(
    html: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Makes each picture a link to its file, which a phone can enlarge."""
    return _PICTURE.sub(r'<a class="picture" href="\1">\g<0></a>', html)
