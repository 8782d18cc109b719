"""Sums up a JUnit XML report: `junit_counts.py REPORT`.

Prints "passed failed skipped", then the name of each failed test on a line.
A report that is missing or broken has no tests.
"""

import sys
import xml.etree.ElementTree as ElementTree


def main(path):
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []

    failed, skipped = [], 0
    for case in cases:
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif "skipped" in outcomes:
            skipped += 1

    print(len(cases) - len(failed) - skipped, len(failed), skipped)
    for name in failed:
        print(name)


if __name__ == "__main__":
    main(sys.argv[1])
