"""Compiles each file of a build folder alone, and each header as a file.

The arguments are a folder with compile_commands.json, the folder of the generated
headers, the number of jobs, and words, of which the path of a file must contain one.
"""

import json
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A header for several languages and compilers is checked where it is used.
FOLDERS = ("include", "lib", "emulator/include", "emulator/lib", "python/src", "tools", "test/fuzz")


def read_commands(folder, generated):
    """Reads the command that checks each file of the project."""
    commands = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if not path.is_relative_to(ROOT) or path.is_relative_to(folder):
            continue
        text = entry["command"].replace(f"{folder}/", f"{generated}/")
        words = shlex.split(text)
        while not words[0].endswith(("clang++-22", "clang-22", "clang++", "clang")):
            del words[0]
        end = words.index("-o")
        commands[path] = [*words[:end], "-fsyntax-only", "-ferror-limit=2", "-Wno-unused-command-line-argument"]
    return commands


def find_neighbour(header, commands):
    """Finds a file with options for a header: one of the nearest folder."""
    where = header.parent.relative_to(ROOT)
    for includes in ("include/kvcache", "include/kvcache-c"):
        where = Path(str(where).replace(includes, "lib"))
    for folder in (ROOT / where, *(ROOT / where).parents):
        for path in commands:
            if path.suffix == ".cpp" and path.is_relative_to(folder):
                return path
    raise SystemExit(f"no file is compiled near {header}")


def list_checks(commands):
    for path, command in commands.items():
        yield path, [*command, str(path)]
    for folder in FOLDERS:
        for header in sorted((ROOT / folder).rglob("*.h")):
            command = commands[find_neighbour(header, commands)]
            yield header, [*command, "-Wno-pragma-once-outside-header", "-x", "c++", str(header)]


def check(item):
    path, command = item
    result = subprocess.run(command, capture_output=True, text=True)
    return path, result.returncode, result.stderr


def main():
    folder, generated, jobs, *words = sys.argv[1:]
    commands = read_commands(Path(folder), Path(generated))
    checks = list(list_checks(commands))
    if words:
        checks = [item for item in checks if any(word in str(item[0]) for word in words)]
    failed = 0
    with ThreadPoolExecutor(int(jobs)) as pool:
        for path, status, errors in pool.map(check, checks):
            if status:
                failed += 1
                print(f"{path.relative_to(ROOT)}:\n{errors}", flush=True)
    print(f"{len(checks)} files, {failed} failed")
    return 1 if failed or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
