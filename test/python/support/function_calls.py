"""Counts of function calls, which are equal on any machine."""

import sys


def count_calls(function, *arguments):
    """Counts the function calls of a call, including those of C."""
    calls = 0

    def note(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return calls
