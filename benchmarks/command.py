"""The command lines of the benchmarks: options of their own, and those that all have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from measure import Absent
from provenance import FOLDER
from record import Record

CHIPS = ("sm_80", "sm_90a", "sm_100a")
HINT = "scripts/setup.sh --build builds what is needed; then run with PYTHONPATH=build/python"


def parse_positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"expects a positive number, got {text!r}")
    return int(text)


def parse_sizes(text: str) -> list[int]:
    return [parse_positive(each) for each in text.split(",")]


def parse_names(known: Sequence[str] | Callable[[], Sequence[str]]) -> Callable[[str], list[str]]:
    """Makes a parser of names that commas separate; the known ones may be a function, which is called late."""

    def parse(text: str) -> list[str]:
        names = list(dict.fromkeys(name.strip() for name in text.split(",")))
        every = known() if callable(known) else known
        if unknown := [name for name in names if name not in every]:
            raise argparse.ArgumentTypeError(f"unknown name {unknown[0]!r}; known are {', '.join(every)}")
        return names

    return parse


def list_chips() -> Sequence[str]:
    import kvcache

    return kvcache.chips()


class Command:
    """The command line of a benchmark: its own options, and those that all have."""

    def __init__(self, program: str, description: str | None, record: str = "") -> None:
        """
        Args:
            record: The name of the record in benchmarks/results, if the benchmark makes all of it.
        """
        self.path = FOLDER / f"results/{record}.json" if record else None
        self.parser = argparse.ArgumentParser(
            prog=program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self.add = self.parser.add_argument

    def add_chips(self, *chips: str, are_many: bool = True) -> None:
        """Adds the option ``--chips``, or ``--chip``."""
        names = ",".join(chips)
        parse = parse_names(list_chips)
        if are_many:
            self.add("--chips", type=parse, default=list(chips), metavar="CHIP,…", help=f"default: {names}")
        else:
            self.add("--chip", type=lambda text: parse(text)[0], default=names, help=f"default: {names}")

    def add_count(self, option: str, default: int | None, help: str) -> None:
        suffix = "" if default is None else " (default: %(default)s)"
        self.add(option, type=parse_positive, default=default, metavar="N", help=help + suffix)

    def parse(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        self.add("--markdown", action="store_true", help="print tables in Markdown")
        self.add("--json", type=Path, metavar="FILE", help="also write the tables and their origin to this file")
        if self.path:
            place = self.path.relative_to(FOLDER.parent)
            self.add("--record", dest="json", action="store_const", const=self.path, help=f"the same to {place}")
        return self.parser.parse_args(arguments)

    def run(
        self,
        measure: Callable[[argparse.Namespace], Record],
        arguments: Sequence[str] | argparse.Namespace | None = None,
    ) -> int:
        """Measures, prints the tables, and writes the record; its errors are those of the command.

        Args:
            arguments: The arguments of the command line, or the result of ``parse`` for them.
        """
        import kvcache

        options = arguments if isinstance(arguments, argparse.Namespace) else self.parse(arguments)
        try:
            record = measure(options)
            print(record.render(options.markdown))
            if options.json:
                record.save(options.json)
        except (kvcache.Error, Absent, OSError, ValueError) as error:
            sys.exit(f"error: {error}")
        return 0
