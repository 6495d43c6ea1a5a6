#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build sdist and wheel, install the wheel in a new virtual environment without ROS, and run the offline demo there.
#   tools/check_wheel.sh [FOLDER]      (default: a temporary one, removed at the end; PYTHON=...: the interpreter)
set -euo pipefail
root=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd -P)
if [[ $# -gt 0 ]]; then
  mkdir -p "$1" && folder=$(cd "$1" && pwd -P)
else
  folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
fi
say() { printf 'mbse_ros: [%3d s] %s\n' "$SECONDS" "$*"; }
unset PYTHONPATH AMENT_PREFIX_PATH

say 'sdist and wheel'
"${PYTHON:-python3}" -m venv "$folder/build"
"$folder/build/bin/python" -m pip install -q build 2>/dev/null
# of a copy: setuptools writes beside what it packs
mkdir "$folder/source"
tar -C "$root" --exclude=./.git --exclude=./.env --exclude=./out --exclude=./build --exclude=./install --exclude=./log \
  -cf - . | tar -C "$folder/source" -xf -
"$folder/build/bin/python" -m build -o "$folder/dist" "$folder/source" >"$folder/build.log" 2>&1 ||
  { tail -n 30 "$folder/build.log" >&2; exit 1; }

say 'a new environment without ROS'
"${PYTHON:-python3}" -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q "$folder"/dist/*.whl 2>/dev/null
cd "$folder"            # nothing of the source tree may be found
"$folder/env/bin/python" - <<'PYTHON'
import importlib.util
import mbse_ros
assert importlib.util.find_spec('rclpy') is None, 'ROS shows through'
assert 'site-packages' in mbse_ros.__file__, mbse_ros.__file__
PYTHON

say 'mbse check, mbse demo --offline'
"$folder/env/bin/mbse" check zx200 >"$folder/check.txt"
"$folder/env/bin/mbse" demo --offline -o "$folder/demo"
test -s "$folder"/demo/*/report/index.html
say "the wheel works: $(cd "$folder/dist" && echo *.whl)"
