# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of arguments."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Hashable, Iterable

import numpy as np


def check_integer(**values: object) -> None:
    """Raises ``TypeError`` unless values are integers, with the name."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"expects {name!r} to be an integer, got {value!r}")


def check_positive(**values: int) -> None:
    """Raises ``ValueError`` for an integer below 1, ``TypeError`` for other values."""
    check_integer(**values)
    for name, value in values.items():
        if value <= 0:
            raise ValueError(f"expects {name!r} to be positive, got {value}")


def check_size(most: int, **values: int) -> None:
    """Raises ``ValueError`` for an integer below 1 or above ``most``."""
    check_positive(**values)
    for name, value in values.items():
        if value > most:
            raise ValueError(f"expects {name!r} to be at most {most}, got {value}")


def check_instance(kind: type, **values: object) -> None:
    """Raises ``TypeError`` for a value of another type, such as a class itself."""
    for name, value in values.items():
        if isinstance(value, type) or not isinstance(value, kind):
            article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
            raise TypeError(
                f"expects {name!r} to be {article} {kind.__name__}, got {value!r}{_list_missing(kind, value)}"
            )


def _list_missing(kind: type, value: object) -> str:
    """Lists the methods of a protocol that a value lacks, if it has some of them."""
    if not getattr(kind, "_is_protocol", False):
        return ""
    methods = [name for name in dir(kind) if not name.startswith("_")]
    missing = [name for name in methods if not hasattr(value, name)]
    if not 0 < len(missing) < len(methods):
        return ""
    return f" without {', '.join(map(repr, missing))}"


def check_positive_real(**values: object) -> None:
    """Raises ``TypeError`` unless numbers, ``ValueError`` unless 0 < x < inf."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"expects {name!r} to be a number, got {value!r}")
        if not 0 < _as_float(value) < math.inf:
            raise ValueError(
                f"expects {name!r} to be positive and finite, got {value!r}"
            )


def _as_float(value: numbers.Real) -> float:
    """Converts a number; infinity for an integer that is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_share(**values: object) -> None:
    """Raises ``TypeError`` unless numbers, ``ValueError`` unless 0 <= x <= 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"expects {name!r} to be a number, got {value!r}")
        if not 0 <= _as_float(value) <= 1:
            raise ValueError(f"expects {name!r} to be 0 to 1, got {value!r}")


def check_gibibytes(**values: float) -> None:
    """Checks as ``check_positive_real``, and that as GiB they are below 2^63 bytes."""
    check_positive_real(**values)
    for name, value in values.items():
        if value >= 2**33:
            raise ValueError(f"expects {name!r} to be below 2^33, got {value!r}")


def check_positive_f32(**values: float) -> None:
    """Checks as ``check_positive_real``, and that f32 has them as normal numbers."""
    check_positive_real(**values)
    for name, value in values.items():
        if not 2.0**-126 <= value < 2.0**128 - 2.0**103:
            raise ValueError(
                f"expects {name!r} to be in the range of f32, got {value!r}"
            )


def check_string(**values: object) -> None:
    """Raises ``TypeError`` unless values are strings."""
    for name, value in values.items():
        if not isinstance(value, str):
            raise TypeError(f"expects {name!r} to be a string, got {value!r}")


def check_text(**values: object) -> None:
    """Checks as ``check_string``, and that UTF-8 can encode the strings."""
    check_string(**values)
    for name, value in values.items():
        try:
            str(value).encode()
        except UnicodeEncodeError:
            raise ValueError(f"expects {name!r} to be text of Unicode, got {value!r}") from None


def check_path(**values: object) -> None:
    """Raises ``TypeError`` unless values are paths."""
    for name, value in values.items():
        if not isinstance(value, str | bytes | os.PathLike):
            raise TypeError(f"expects {name!r} to be a path, got {value!r}")


def check_flag(**values: object) -> None:
    """Raises ``TypeError`` unless values are True or False."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"expects {name!r} to be True or False, got {value!r}")


def parse_requests(
    requests: Iterable[Hashable], argument: str = "requests"
) -> tuple[Hashable, ...]:
    """Parses the names of requests. Raises ``TypeError`` unless it is a sequence."""
    try:
        names = tuple(requests)
    except TypeError:
        raise TypeError(
            f"expects {argument!r} to be a sequence of requests, got {requests!r}"
        ) from None
    try:
        hash(names)  # the names' hashes in one call
    except TypeError:
        for name in names:
            check_request(request=name)
    return names


def parse_drafts(
    drafts: Iterable[Iterable[Hashable]] | None, count: int
) -> list[tuple[Hashable, ...]]:
    """Parses the drafts of ``count`` requests. Raises ``ValueError`` for others."""
    if drafts is None:
        return [()] * count
    try:
        groups = list(drafts)
    except TypeError:
        raise TypeError(
            f"expects 'drafts' to be a sequence of drafts for each request, got {drafts!r}"
        ) from None
    if len(groups) != count:
        raise ValueError(
            f"expects drafts for each of {count} requests, got {len(groups)}"
        )
    return [parse_requests(group, "drafts") for group in groups]


def check_request(**values: object) -> None:
    """Raises ``TypeError`` unless values can be names of requests."""
    for name, value in values.items():
        try:
            hash(value)
        except TypeError:
            raise TypeError(f"expects {name!r} to be hashable, got {value!r}") from None
