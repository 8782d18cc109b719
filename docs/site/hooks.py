"""What MkDocs does for this site beside its own: generated pages, and links."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import chips
import mlir_lexer
import dialect_reference
import sources

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
    _made.update(moved | dialect_reference.pages() | chips.pages())
    _made.update(sources.pages(written | moved))
    config.nav = [_with_folders(entry) for entry in config.nav]
    return config


def _with_folders(entry: object) -> object:
    """An entry of the nav, with the pages of each folder that it names."""
    if isinstance(entry, list):
        return [_with_folders(child) for child in entry]
    if isinstance(entry, dict):
        return {title: _with_folders(child) for title, child in entry.items()}
    if isinstance(entry, str) and entry.endswith("/"):
        return [page for page in _made if page.startswith(entry)]
    return entry


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
