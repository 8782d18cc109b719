"""The build context of a Dockerfile: the files that COPY can read."""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class IgnoreRule:
    """A line of a .dockerignore file.

    Attributes:
        pattern: Matches a path, relative to the context.
        is_ignored: Whether a match is left out; False for a line with ``!``.
    """

    pattern: re.Pattern[str]
    is_ignored: bool


@dataclass(frozen=True)
class BuildContext:
    """The files of a folder, without those that an ignore file leaves out.

    Attributes:
        folder: The folder.
        rules: The rules of the ignore file; the last that matches a path decides.
    """

    folder: Path
    rules: tuple[IgnoreRule, ...] = ()

    @classmethod
    def read(cls, folder: Path, dockerfile: Path) -> "BuildContext":
        """Reads the ignore file of a Dockerfile: NAME.dockerignore beside it, or .dockerignore in the folder."""
        for path in (dockerfile.with_name(f"{dockerfile.name}.dockerignore"), folder / ".dockerignore"):
            if path.exists():
                return cls(folder, parse_rules(path.read_text()))
        return cls(folder)

    def is_ignored(self, path: PurePosixPath) -> bool:
        """Whether the rules leave out a path, relative to the folder."""
        ignored = False
        for rule in self.rules:
            # A rule for a folder is one for its files.
            if any(rule.pattern.fullmatch(str(each)) for each in (path, *path.parents)):
                ignored = rule.is_ignored
        return ignored

    def find_files(self, root: Path) -> list[Path]:
        """The files of a folder, or a file itself, except ignored ones, as absolute paths."""
        paths = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
        return [path for path in paths if not self.is_ignored(PurePosixPath(path.relative_to(self.folder)))]


def parse_rules(text: str) -> tuple[IgnoreRule, ...]:
    """The rules of an ignore file, in its order."""
    lines = (line.strip() for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        IgnoreRule(compile_pattern(line.removeprefix("!").strip()), not line.startswith("!")) for line in lines if line
    )


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern of paths: * and ? match within a name, ** matches any folders, [ab] and [^ab] a character."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", str(PurePosixPath(pattern.strip("/"))))
    meanings = {"**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    made = (meanings.get(part) or (part if part.startswith("[") else re.escape(part)) for part in parts)
    return re.compile("".join(made))
