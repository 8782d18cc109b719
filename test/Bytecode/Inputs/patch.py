"""Changes a byte of a file: `patch.py INPUT OUTPUT PATTERN BYTE`.

The byte, a number, replaces the group of the pattern, a regular expression over
bytes that matches once.
"""

import re
import sys
from pathlib import Path


def main(source, target, pattern, byte):
    data = bytearray(Path(source).read_bytes())
    matches = list(re.finditer(pattern.encode(), data, flags=re.DOTALL))
    if len(matches) != 1:
        sys.exit(f"{pattern} matches {len(matches)} times in {source}")
    data[matches[0].start(1)] = int(byte)
    Path(target).write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
