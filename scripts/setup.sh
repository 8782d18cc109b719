#!/usr/bin/env bash
# Sets a machine up to build and test this project. Run it only for the set-up, or
# source it for the functions that the other scripts use:
#
#   kvcache_setup   Debian packages and the Python environment in build/venv
#   kvcache_build   configure and compile into build/
#   kvcache_encoder the model that some examples run, into build/venv
#   kvcache_nixl    the engine that brings pages from other processes, into build/venv
#   kvcache_simulation  SimPy, for a simulated cluster, into build/venv
#   kvcache_docs_packages   the packages for the documentation site, into build/venv
#   kvcache_peers   the compilers for the comparison of scripts/bench, in build/bench-venv
#   kvcache_extras  PyTorch and other frameworks, in build/extras-venv
#   kvcache_engines vLLM and SGLang with requirements, in build/engines-venv
#   kvcache_step    run one named command, logged and timed
#
# Progress goes to stderr, so that stdout has only the output of the script.
set -euo pipefail

KVCACHE_ROOT="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)"
KVCACHE_BUILD="$KVCACHE_ROOT/build"
KVCACHE_VENV="$KVCACHE_BUILD/venv"

readonly LLVM_VERSION=22
readonly LLVM_PACKAGES=(
  "libmlir-$LLVM_VERSION-dev" "mlir-$LLVM_VERSION-tools"
  "llvm-$LLVM_VERSION-dev" "llvm-$LLVM_VERSION-tools"
  "clang-$LLVM_VERSION" "lld-$LLVM_VERSION" "clang-format-$LLVM_VERSION"
)
readonly BASE_PACKAGES=(
  cmake ninja-build ccache git gcc
  python3 python3-venv python3-dev
  libzstd-dev zlib1g-dev libboost-context-dev
)

kvcache_die() {
  printf 'error: %s\n' "$1" >&2
  shift
  if (($#)); then printf '  %s\n' "$@" >&2; fi
  exit 1
}

kvcache_now() { printf '%s' "${EPOCHREALTIME/[^0-9]/}"; } # microseconds

# Seconds since $1 (from kvcache_now), with one decimal.
kvcache_since() {
  local tenths=$((($(kvcache_now) - $1) / 100000))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# kvcache_logged LOG COMMAND...: runs the command with its output in a log, and shows
# how far it is: the last "[7/200]", "(7 of 200)" or "[ 4%]" in the log. On a terminal
# it rewrites the line, elsewhere it adds to it every 30 seconds.
kvcache_logged() {
  local log="$1" command_pid progress last="" next=0 interval=30 rc=0
  shift
  if [[ -t 2 ]]; then interval=1; fi
  "$@" >"$log" 2>&1 &
  command_pid=$!
  # Ctrl-C does not reach a background process of a script.
  trap 'kill "$command_pid" 2>/dev/null; exit 130' INT TERM
  while kill -0 "$command_pid" 2>/dev/null; do
    sleep 0.2
    ((SECONDS >= next)) || continue
    next=$((SECONDS + interval))
    progress="$(tail -c 4000 "$log" 2>/dev/null |
      grep -aoE '\[[0-9]+/[0-9]+\]|\([0-9]+ of [0-9]+\)|\[ *[0-9]+%\]' | tail -n 1 || true)"
    [[ -n "$progress" && "$progress" != "$last" ]] || continue
    if [[ -t 2 ]]; then
      printf '%s\e[%dD' "$progress" "${#progress}" >&2
    else
      printf '%s ' "$progress" >&2
    fi
    last="$progress"
  done
  wait "$command_pid" || rc=$?
  trap - INT TERM
  if [[ -t 2 ]]; then printf '\e[K' >&2; fi
  return "$rc"
}

# kvcache_step NAME COMMAND...: runs the command with its output in
# build/logs/NAME.log, and shows the relevant end of the log if it fails. With
# KVCACHE_VERBOSE=1, it shows the output immediately.
kvcache_step() {
  local name="$1" start log rc=0
  shift
  start="$(kvcache_now)"
  log="$KVCACHE_BUILD/logs/$name.log"
  mkdir -p "$KVCACHE_BUILD/logs"
  if [[ -n "${KVCACHE_VERBOSE:-}" ]]; then
    printf '%s: %s\n' "$name" "$*" >&2
    "$@" >&2 || rc=$?
    printf '%-12s ' "$name" >&2
  else
    printf '%-12s ' "$name" >&2 # the rest of the line when it is done
    kvcache_logged "$log" "$@" || rc=$?
    if ((rc)); then
      printf 'failed, from %s:\n' "$log" >&2
      kvcache_log_excerpt "$log" >&2
    fi
  fi
  if ((rc)); then kvcache_die "step '$name' failed after $(kvcache_since "$start") s: $*"; fi
  printf '%-40s %7s s\n' "done" "$(kvcache_since "$start")" >&2
}

# Prints the log from the first marked failure on, else its end.
kvcache_log_excerpt() {
  local first
  first="$(grep -n -m1 -E '^FAILED:|^CMake Error' "$1" | cut -d: -f1 || true)"
  if [[ -n "$first" ]]; then
    tail -n "+$first" "$1" | head -n 80
  else
    tail -n 60 "$1"
  fi
}

# --- Debian packages ---------------------------------------------------------

kvcache_apt() {
  local root=()
  if ((EUID != 0)); then root=(sudo); fi
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y "$@"
}

# Prints the archive of Debian that this machine uses, or nothing.
kvcache_archive() {
  local files=(/etc/apt/sources.list /etc/apt/sources.list.d/*)
  grep -hsE '^(URIs:|deb) ' "${files[@]}" | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ' || true
}

kvcache_apt_install() {
  # Fetch the package list only if it is missing or out of date.
  kvcache_apt --no-install-recommends install "$@" && return
  kvcache_apt update
  kvcache_apt --no-install-recommends install "$@" && return
  printf 'LLVM %s is in the security suite of Debian 12: is it enabled?\n' "$LLVM_VERSION"
  printf 'Any other build of LLVM %s.1 with MLIR works too: set MLIR_DIR.\n' "$LLVM_VERSION"
  return 1
}

kvcache_packages() {
  local wanted=("${BASE_PACKAGES[@]}") missing=() package installed
  if [[ -z "${MLIR_DIR:-}" ]]; then
    wanted+=("${LLVM_PACKAGES[@]}")
  elif [[ ! -f "$MLIR_DIR/MLIRConfig.cmake" ]]; then
    kvcache_die "MLIR_DIR is '$MLIR_DIR', which holds no MLIRConfig.cmake" \
      "It should be the lib/cmake/mlir folder of an LLVM $LLVM_VERSION.1 install."
  fi

  if ! command -v dpkg-query >/dev/null; then
    kvcache_commands "${wanted[@]}"
    return
  fi
  installed=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' "${wanted[@]}" 2>/dev/null || true)"
  for package in "${wanted[@]}"; do
    [[ "$installed" == *" $package=installed "* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  if ! command -v apt-get >/dev/null; then
    kvcache_die "these packages are missing, and there is no apt-get to install them:" "${missing[@]}"
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    kvcache_die "these packages are missing, and installing them needs root or sudo:" \
      "apt-get install ${missing[*]}"
  fi
  kvcache_step packages kvcache_apt_install "${missing[@]}"
}

# Without Debian packages, checks that the programs exist, from any source.
kvcache_commands() {
  local missing=() program
  if [[ -z "${MLIR_DIR:-}" ]]; then
    kvcache_die "this is not a Debian machine, so LLVM $LLVM_VERSION can't be installed for you" \
      "Install LLVM $LLVM_VERSION.1 with MLIR and set MLIR_DIR to its lib/cmake/mlir folder." \
      "What a Debian machine gets: $*"
  fi
  for program in cmake ninja git "$(kvcache_python)"; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  if ((${#missing[@]})); then kvcache_die "these programs are missing, please install them:" "${missing[@]}"; fi
}

# --- Python environment ------------------------------------------------------

kvcache_python() {
  if [[ -n "${PYTHON:-}" ]]; then
    printf '%s' "$PYTHON"
  elif [[ -x /usr/bin/python3 ]]; then
    printf '/usr/bin/python3' # the one that python3-dev has headers for
  else
    printf 'python3'
  fi
}

# Creates build/venv from requirements.txt, and links the CUDA tools of its
# packages into build/venv/bin.
kvcache_venv_install() {
  local python
  python="$(kvcache_python)"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    printf '%s is older than Python 3.11: set PYTHON to a newer one\n' "$python"
    return 1
  }
  rm -rf "$KVCACHE_VENV"
  "$python" -m venv "$KVCACHE_VENV" || return
  "$KVCACHE_VENV/bin/python" -I -m pip install --disable-pip-version-check \
    --no-deps --only-binary :all: -r "$KVCACHE_ROOT/requirements.txt" || {
    printf 'pip could not install requirements.txt: is PyPI, or a mirror of it, within reach?\n'
    return 1
  }
  local site tool
  site="$("$KVCACHE_VENV/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" || return
  for tool in ptxas fatbinary nvlink nvdisasm; do
    ln -sfn "../${site#"$KVCACHE_VENV/"}/nvidia/cu13/bin/$tool" "$KVCACHE_VENV/bin/$tool" || return
    "$KVCACHE_VENV/bin/$tool" --version || return
  done
}

kvcache_venv() {
  local stamp="$KVCACHE_VENV/.kvcache-stamp" state
  # A virtual environment has absolute paths, so its path is part of its state.
  state="$(realpath -m -- "$KVCACHE_VENV") ${PYTHON:-} $(cksum <"$KVCACHE_ROOT/requirements.txt")"
  [[ "$(cat "$stamp" 2>/dev/null)" != "$state" || ! -x "$KVCACHE_VENV/bin/python" ]] || return 0

  kvcache_step venv kvcache_venv_install
  printf '%s\n' "$state" >"$stamp"
}

kvcache_setup() {
  kvcache_packages
  kvcache_venv
}

kvcache_encoder() {
  kvcache_step encoder "$KVCACHE_VENV/bin/python" -I -m pip install \
    --disable-pip-version-check --no-deps --only-binary :all: \
    -r "$KVCACHE_ROOT/examples/requirements.txt"
}

# The version that the suite "extras" has; without PyTorch, which it does not need.
kvcache_nixl() {
  kvcache_step nixl "$KVCACHE_VENV/bin/python" -I -m pip install \
    --disable-pip-version-check --no-deps --only-binary :all: \
    "$(grep '^nixl' "$KVCACHE_ROOT/test/python/extras/requirements.txt")"
}

kvcache_simulation() {
  kvcache_step simulation "$KVCACHE_VENV/bin/python" -I -m pip install \
    --disable-pip-version-check --no-deps --only-binary :all: \
    "$(grep '^simpy' "$KVCACHE_ROOT/test/python/extras/requirements.txt")"
}

kvcache_docs_packages() {
  kvcache_step docs-packages "$KVCACHE_VENV/bin/python" -I -m pip install \
    --disable-pip-version-check --no-deps --only-binary :all: \
    -r "$KVCACHE_ROOT/docs/site/requirements.txt"
}

kvcache_other_venv_install() { # VENV REQUIREMENTS [OPTION...]
  rm -rf "$1"
  "$(kvcache_python)" -m venv "$1" || return
  "$1/bin/python" -I -m pip install --disable-pip-version-check --only-binary :all: -r "$2" "${@:3}"
}

# A virtual environment beside the project's, for the packages of a list.
kvcache_other_venv() { # STEP VENV REQUIREMENTS [OPTION...]
  local state
  state="$2 ${PYTHON:-} $(cat "$3" "$KVCACHE_ROOT/requirements.txt" | cksum)"
  [[ "$(cat "$2/.kvcache-stamp" 2>/dev/null)" != "$state" ]] || return 0
  kvcache_step "$1" kvcache_other_venv_install "${@:2}"
  printf '%s\n' "$state" >"$2/.kvcache-stamp"
}

kvcache_peers() {
  kvcache_other_venv peers "$KVCACHE_BUILD/bench-venv" "$KVCACHE_ROOT/benchmarks/requirements.txt" --no-deps
}

kvcache_extras() {
  kvcache_other_venv extras "$KVCACHE_BUILD/extras-venv" "$KVCACHE_ROOT/test/python/extras/requirements.txt"
}

kvcache_engines() {
  kvcache_other_venv engines "$KVCACHE_BUILD/engines-venv" \
    "$KVCACHE_ROOT/test/python/engines/requirements.txt" --no-deps
}

# --- Build -------------------------------------------------------------------

# Prints the first of the given programs that exists.
kvcache_first_of() {
  local program
  for program in "$@"; do
    if command -v "$program" 2>/dev/null; then return; fi
  done
  return 1
}

# Sets the array `configure` to the options that differ from the preset.
kvcache_configure_options() {
  configure=()
  command -v ccache >/dev/null || configure+=(-DCMAKE_C_COMPILER_LAUNCHER= -DCMAKE_CXX_COMPILER_LAUNCHER=)
  [[ -n "${MLIR_DIR:-}" ]] || return 0

  local llvm cc cxx
  llvm="${LLVM_DIR:-$(dirname -- "$MLIR_DIR")/llvm}"
  configure+=("-DMLIR_DIR=$MLIR_DIR" "-DLLVM_DIR=$llvm")
  cc="${CC:-$(kvcache_first_of "$llvm/../../../bin/clang" "clang-$LLVM_VERSION" clang cc || true)}"
  cxx="${CXX:-$(kvcache_first_of "$llvm/../../../bin/clang++" "clang++-$LLVM_VERSION" clang++ c++ || true)}"
  [[ -n "$cxx" ]] || kvcache_die "no C++ compiler found: install clang-$LLVM_VERSION or set CC and CXX"
  configure+=("-DCMAKE_C_COMPILER=$cc" "-DCMAKE_CXX_COMPILER=$cxx")
  if ! kvcache_first_of "$llvm/../../../bin/ld.lld" "ld.lld-$LLVM_VERSION" ld.lld >/dev/null; then
    configure+=(-DCMAKE_{EXE,MODULE,SHARED}_LINKER_FLAGS_INIT=)
  fi
}

kvcache_configure() {
  local stamp="$KVCACHE_BUILD/.kvcache-configured" state configure
  kvcache_configure_options
  state="$KVCACHE_ROOT ${configure[*]} ${PYTHON:-} $(cksum <"$KVCACHE_ROOT/CMakePresets.json")"
  [[ ! -f "$KVCACHE_BUILD/build.ninja" || "$(cat "$stamp" 2>/dev/null)" != "$state" ]] || return 0

  # A CMake cache for another folder, compiler or Python cannot be reused, nor another Python's extension.
  rm -f "$KVCACHE_BUILD"/python/kvcache/_kvcache.*.so
  kvcache_step configure cmake -S "$KVCACHE_ROOT" --preset default --fresh "${configure[@]}"
  printf '%s\n' "$state" >"$stamp"
}

kvcache_build() {
  kvcache_configure
  kvcache_step build cmake --build "$KVCACHE_BUILD"
}

# --- As a program ------------------------------------------------------------

kvcache_setup_main() {
  case "${1:-}" in
  -h | --help)
    cat <<'HELP'
usage: scripts/setup.sh [--build]

Installs the Debian packages that are missing, makes the Python environment in
build/venv from requirements.txt, and configures build/ with CMake. Takes less
than a second where nothing is missing. The other scripts do this by themselves.

  --build    compile as well
  --help     show this text

Environment:
  MLIR_DIR          lib/cmake/mlir of another LLVM 22.1; no LLVM packages then
  LLVM_DIR          lib/cmake/llvm of it (default: beside MLIR_DIR)
  CC, CXX           compilers to use with MLIR_DIR (default: its clang)
  PYTHON            Python 3.11 or newer (default: /usr/bin/python3)
  KVCACHE_VERBOSE   1 shows the output of every step as it comes
  CMAKE_BUILD_PARALLEL_LEVEL   compile jobs at a time

Example:
  scripts/setup.sh --build
HELP
    ;;
  --build)
    kvcache_setup
    kvcache_build
    ;;
  "")
    kvcache_setup
    kvcache_configure
    ;;
  *) kvcache_die "unknown option '$1'" "See scripts/setup.sh --help." ;;
  esac
}

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then kvcache_setup_main "$@"; fi
