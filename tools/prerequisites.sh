#!/bin/sh
# Says what is missing on this machine and the exact line that installs it. Usage: prerequisites.sh PYTHON
python="$1"
if ! command -v "$python" >/dev/null 2>&1; then
    echo "Python 3.11 or newer is missing. Install it with:  sudo apt-get install python3 python3-dev python3-venv" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "$python is $("$python" --version); maxmargin needs 3.11 or newer. Name another one with:  make PYTHON=python3.11 ..." >&2
    exit 1
fi
missing=""
command -v "${CXX:-c++}" >/dev/null 2>&1 || missing="$missing g++"
"$python" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' \
    || missing="$missing python3-dev"
"$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || missing="$missing python3-venv"
if [ -n "$missing" ]; then
    echo "Missing:$missing. Install with:  sudo apt-get install$missing" >&2
    exit 1
fi
