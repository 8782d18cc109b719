"""A Pygments lexer for MLIR, for the code of the documentation."""

from __future__ import annotations

import sys
from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.lexers._mapping import LEXERS
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
)

__all__ = ["MLIRLexer"]  # as Pygments requires of a module of lexers


class MLIRLexer(RegexLexer):
    """Operations, types, attributes, values and symbols; what is unknown is text."""

    name = "MLIR"
    aliases: ClassVar[list[str]] = ["mlir"]
    filenames: ClassVar[list[str]] = ["*.mlir"]
    tokens: ClassVar[dict[str, list[tuple]]] = {
        "root": [
            (r"//.*?$", Comment.Single),
            (r'"(?:\\.|[^"\\\n])*"', String),
            (r"%[\w$.-]+(?:[:#]\d+)?", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"\^[\w$.-]+", Name.Label),
            (r"[!#][A-Za-z_][\w$.]*", Keyword.Type),
            (
                r"([a-z_]\w*)(\.)([a-z_][\w.]*)",
                bygroups(Name.Namespace, Punctuation, Keyword),
            ),
            # A shape, such as 64x128x in memref<64x128xbf16>.
            (r"(?:(?:\d+|\?|\*)x)+", Number.Integer),
            (
                r"(?:(?<=\dx)|(?<=\?x)|\b)"
                r"(?:[su]?i\d+|f\d+(?:E\d+M\d+\w*)?|bf16|tf32|index|none)\b",
                Keyword.Type,
            ),
            (
                r"\b(?:memref|vector|tensor|tuple|complex|strided|affine_map)\b",
                Keyword.Type,
            ),
            (r"\b(?:true|false|unit|dense|loc|offset)\b", Keyword.Constant),
            (r"\b(?:return|module|kernel|private|attributes|to|step)\b", Keyword),
            (r"-?\b0x[0-9a-fA-F]+\b", Number.Hex),
            (r"-?\b\d+\.\d*(?:[eE][-+]?\d+)?", Number.Float),
            (r"-?\b\d+\b", Number.Integer),
            (r"->|[=:+*]", Operator),
            (r"[\[\](){}<>,]", Punctuation),
            (r"[A-Za-z_][\w$]*", Name),
            (r"\s+|.", Text),
        ]
    }


def register() -> None:
    """Lets Pygments find the lexer by its name, in this process."""
    module = sys.modules[__name__]
    LEXERS["MLIRLexer"] = (
        module.__name__,
        MLIRLexer.name,
        tuple(MLIRLexer.aliases),
        tuple(MLIRLexer.filenames),
        (),
    )
