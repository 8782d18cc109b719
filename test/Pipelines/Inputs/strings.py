"""Prints the strings that a PTX file holds, one per line."""

import re
import sys

for numbers in re.findall(r"\.b8 \w+\[\d+\] = \{([\d, ]+)\}", open(sys.argv[1]).read()):
    print(bytes(int(number) for number in numbers.split(",")).rstrip(b"\0\n").decode())
