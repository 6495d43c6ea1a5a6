#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run a command in the environment of the documentation, .env/docs, made first where it is absent or out of date.
#   tools/docs.sh COMMAND ARGUMENT...       (PYTHON=...: the interpreter it is made from)
# It is not that of the code: Sphinx would change the versions of packages that the tests run with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
env=$PWD/.env/docs
lists=(tools/requirements/{python,table,docs}.in)
wanted=$(sha256sum "${lists[@]}")
outdated() { [[ ! -r $env/.made_from || $wanted != "$(<"$env/.made_from")" ]]; }

# Those that use it share the lock; the one that makes it has it alone.
mkdir -p "${env%/*}"
exec 8>>"$env.lock"
if outdated; then
  flock -n 8 || { echo "mbse_ros: waiting for another process that uses ${env#"$PWD/"}" >&2; flock 8; }
fi
if outdated; then
  echo "mbse_ros: making ${env#"$PWD/"} (log: $env.log)" >&2
  rm -rf "$env"
  { "${PYTHON:-python3}" -m venv "$env" && "$env/bin/python" -m pip install -q "${lists[@]/#/-r}"; } >"$env.log" 2>&1 ||
    { tail -n 30 "$env.log" >&2; exit 1; }
  printf '%s\n' "$wanted" >"$env/.made_from"
fi
flock -s 8
# the kernels of the notebooks find the code by PYTHONPATH
export PYTHONPATH=$PWD PATH=$env/bin:$PATH
unset MPLBACKEND
exec "$@"
