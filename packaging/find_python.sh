#!/bin/sh
# Prints the first Python that can build the environment: 3.11 or newer, with venv, pip's bundle, SQLite and TLS.
# Usage: find_python.sh [CANDIDATE ...]   (without candidates: the usual names)
set -u

if [ $# -eq 0 ]; then
    set -- python3 python3.13 python3.12 python3.11
fi

crippled=""
for candidate in "$@"; do
    path=$(command -v "$candidate" 2>/dev/null) || continue
    # A name on PATH may be a version switcher that refuses to run, so each is asked.
    "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
    if "$path" -c 'import ctypes, ensurepip, sqlite3, ssl, venv' >/dev/null 2>&1; then
        echo "$path"
        exit 0
    fi
    crippled=${crippled:-$path}
done

if [ -n "$crippled" ]; then
    echo "$crippled cannot make virtual environments (on Debian: apt-get install python3-venv). Do that and try again." >&2
else
    echo "No Python 3.11 or newer was found. Install one (python.org, or your package manager) and try again." >&2
fi
exit 1
