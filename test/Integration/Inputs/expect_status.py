"""Runs a command and succeeds if its exit status is the one given first."""

import subprocess
import sys

sys.exit(subprocess.run(sys.argv[2:], check=False).returncode != int(sys.argv[1]))
