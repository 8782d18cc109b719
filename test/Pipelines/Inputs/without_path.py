"""Runs a command in an empty environment, so that it finds no other tools."""

import shutil
import subprocess
import sys

sys.exit(subprocess.run([shutil.which(sys.argv[1]), *sys.argv[2:]], env={}, check=False).returncode)
