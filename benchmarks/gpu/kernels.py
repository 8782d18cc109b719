"""Machine code in a pack, and what is known about launching it.

A pack is a folder with ``manifest.json``; beside it lie the cubins that it names.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
FORMAT, VERSION = "kvcache-bench-gpu", 1
OURS, PEER = "kvcache", "CUDA C++"


class PackError(ValueError):
    """The folder is not a pack, or of another version."""


@dataclass(frozen=True)
class KernelImage:
    """A kernel for a chip. ``source`` is the file's name without its ending; sizes are in bytes.

    Of our kernels the compiler has the names of the parameters, the block, and the descriptors.
    """

    contender: str
    source: str
    chip: str
    name: str
    cubin: str
    parameters: tuple[dict[str, Any], ...] = ()
    descriptors: tuple[dict[str, Any], ...] = ()
    block: tuple[int, int, int] | None = None
    shared_bytes: int = 0


@dataclass
class Pack:
    """``missing`` says why a contender has no code for a chip."""

    provenance: dict[str, str]
    images: list[KernelImage] = field(default_factory=list)
    missing: list[dict[str, str]] = field(default_factory=list)
    folder: Path = Path()

    @property
    def chips(self) -> list[str]:
        return list(dict.fromkeys(image.chip for image in self.images))

    def find(self, contender: str, source: str, chip: str) -> KernelImage | str:
        """A kernel, or the reason why there is none."""
        for image in self.images:
            if (image.contender, image.source, image.chip) == (contender, source, chip):
                return image
        for entry in self.missing:
            if (entry["contender"], entry["source"], entry["chip"]) == (contender, source, chip):
                return entry["reason"]
        return f"the pack has no {source} for {chip}"

    def read(self, image: KernelImage) -> bytes:
        return (self.folder / image.cubin).read_bytes()

    def save(self) -> None:
        """Writes the manifest; the cubins are there already."""
        manifest = {
            "format": FORMAT, "version": VERSION, "provenance": self.provenance, "missing": self.missing,
            "images": [asdict(image) for image in self.images],
        }
        (self.folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def load(folder: Path) -> Pack:
    """Reads the manifest of an unpacked pack."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text())
        if (manifest["format"], manifest["version"]) != (FORMAT, VERSION):
            raise PackError(
                f"{path}: expects version {VERSION} of {FORMAT}, got {manifest['version']} of {manifest['format']}"
            )
        images = [KernelImage(**{name: tuple(value) if isinstance(value, list) else value
                                 for name, value in entry.items()}) for entry in manifest["images"]]
        return Pack(manifest["provenance"], images, manifest["missing"], folder)
    except FileNotFoundError:
        raise PackError(f"{folder}: not a pack: there is no {MANIFEST}") from None
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, PackError):
            raise
        raise PackError(f"{path}: not the manifest of a pack: {error!r}") from error


def choose_chip(capability: tuple[int, int], chips: list[str]) -> str:
    """The chip whose code a device of this compute capability runs best.

    Code for `sm_90a` runs on that architecture only, code for `sm_80` also on later ones of the same generation.
    """
    major, minor = capability
    for suffix in ("a", "f", ""):
        if (name := f"sm_{major}{minor}{suffix}") in chips:
            return name
    older = [(int(match[2]), chip) for chip in chips
             if (match := re.fullmatch(r"sm_(\d+)(\d)", chip)) and int(match[1]) == major and int(match[2]) < minor]
    if not older:
        raise PackError(f"the pack has no code for sm_{major}{minor}: it is for {', '.join(chips) or 'no chip'}")
    return max(older)[1]
