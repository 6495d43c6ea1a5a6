#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Make an environment: system packages, venv, ROS 2 and Python packages, messages and node executables.
#   tools/make_environment.sh LINK FINGERPRINT LIST...   (called by environment.sh, which has set the variables)
# It is made in a folder of its own, LINK.hash; once it is complete LINK stands for it. What runs keeps what it has.
set -euo pipefail
link=$1 fingerprint=$2
shift 2
lists=("$@")
root=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd -P)
cd "$root"
log=$link.log
env=$link.$(sha256sum <<<"$fingerprint" | cut -c 1-12)
export AMENT_PREFIX_PATH=$env${AMENT_PREFIX_PATH#"$link"}
[[ $env != */sourced-* ]] || LD_LIBRARY_PATH=$env${LD_LIBRARY_PATH#"$link"}

# A process inside an environment may be the one that rebuilds it: its own interpreter is not a candidate.
PATH=:$PATH:
while [[ $PATH == *":$root/.env/"* ]]; do
  tail=${PATH#*":$root/.env/"}
  PATH=${PATH%%":$root/.env/"*}:${tail#*:}
done
PATH=${PATH#:} PATH=${PATH%:}
unset VIRTUAL_ENV

say() { printf 'mbse_ros: [%3d s] %s\n' "$SECONDS" "$*"; }

fail() {
  [[ ! -s $log ]] || tail -n 30 "$log"
  say "failed: $* (whole log: $log)"
  exit 1
}

# One environment is made by one process at a time; whoever waited looks again whether it still has to.
lock() {
  mkdir -p "${link%/*}"
  exec 9>"$link.lock"
  flock -n 9 || { say "waiting for another process that makes ${link#"$root/"}"; flock 9; }
  if [[ -r $link/.made_from && $fingerprint == "$(<"$link/.made_from")" ]]; then exit 0; fi
}

# Can this interpreter serve: version, venv with pip, headers to compile against?
python_serves() {
  command -v "$1" >/dev/null && "$1" - >/dev/null 2>&1 <<'PYTHON'
import ensurepip, os, sys, sysconfig, venv
serves = (3, 10) <= sys.version_info[:2] <= (3, 13)
sys.exit(not (serves and os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))))
PYTHON
}

# First of the candidates that serves; beside a sourced ROS 2 only the interpreter that it was built for.
find_python() {
  local candidates=(python3 /usr/bin/python3 python3.12 python3.11 python3.13 python3.10) candidate
  [[ $env != */sourced-* ]] || candidates=(python3)
  [[ -z ${PYTHON:-} ]] || candidates=("$PYTHON")
  for candidate in "${candidates[@]}"; do
    if python_serves "$candidate"; then python=$candidate; return 0; fi
  done
  return 1
}

system_packages() {
  local missing=()
  command -v cmake >/dev/null || missing+=(cmake)
  command -v g++ >/dev/null || missing+=(g++)
  command -v ninja >/dev/null || command -v make >/dev/null || missing+=(ninja-build)
  find_python || missing+=(python3-venv python3-dev)
  [[ ${#missing[@]} -eq 0 ]] || tools/system_packages.sh "${missing[@]}"
  find_python || fail "no Python 3.10 to 3.13 with venv and headers; name one by PYTHON=/path/to/python3"
}

virtual_environment() {
  local options=()
  [[ $env != */sourced-* ]] || options+=(--system-site-packages)
  say "virtual environment of $python ($("$python" -c 'import platform; print(platform.python_version())'))"
  "$python" -m venv "${options[@]}" "$env" >>"$log" 2>&1 || fail 'making the virtual environment'
}

# uv is several times faster than pip, but reads no pip configuration: who has set an index there gets pip.
find_uv() {
  uv=
  [[ $env != */sourced-* ]] || return 0        # uv does not see the packages of a sourced ROS 2
  [[ -z ${PIP_INDEX_URL:-} ]] || return 0
  [[ -z $("$env/bin/python" -m pip config get global.index-url 2>/dev/null) ]] || return 0
  uv=$(command -v uv) && return 0
  "$env/bin/python" -m pip install -q uv >>"$log" 2>&1 && uv=$env/bin/uv || uv=
}

# The message classes of a sourced ROS 2 were compiled against the numpy beside them: that one stays.
constraints() {
  [[ $env == */sourced-* ]] || return 0
  "$env/bin/python" -c 'import numpy; print(f"numpy=={numpy.__version__}")' 2>/dev/null || true
}

python_packages() {
  local arguments=() list
  for list in "${lists[@]}"; do arguments+=(-r "$list"); done
  constraints >"$env/constraints.txt"
  find_uv
  if [[ -n $uv ]]; then
    say "ROS 2 and Python packages (uv)"
    "$uv" pip install -q -p "$env/bin/python" "${arguments[@]}" >>"$log" 2>&1 && return 0
    say "uv did not succeed"
  fi
  say "ROS 2 and Python packages (pip)"
  "$env/bin/python" -m pip install -q "${arguments[@]}" -c "$env/constraints.txt" >>"$log" 2>&1 ||
    fail "pip install ${arguments[*]}"
}

# One CMake project, straight into the environment's prefix: nothing to source afterwards.
#   build NAME SOURCE OPTION...
build() {
  local generator='Unix Makefiles' options=() name=$1 source=$2
  shift 2
  ! command -v ninja >/dev/null || generator=Ninja
  # The wheels come before packages of the same name that the system has, such as std_msgs of a ROS 1 of Debian.
  [[ $env == */sourced-* ]] || options+=(-DCMAKE_TOOLCHAIN_FILE="$root/cmake/ros_wheels.toolchain.cmake"
                                         -DCMAKE_PREFIX_PATH="$env")
  {
    cmake -S "$source" -B "$env/build/$name" -G "$generator" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
      -DCMAKE_INSTALL_PREFIX="$env" -DPython3_EXECUTABLE="$env/bin/python" -DPython3_FIND_VIRTUALENV=ONLY \
      "${options[@]}" "$@" &&
    cmake --build "$env/build/$name" --parallel "$(nproc)" --target install
  } >>"$log" 2>&1 || fail "building $name"
}

# The wheels lack tf2_msgs and control_msgs; a sourced ROS 2 has its own.
missing_messages() {
  local name
  [[ $env != */sourced-* ]] || return 0
  for name in tf2_msgs control_msgs; do
    ! "$env/bin/python" -c "import $name" >/dev/null 2>&1 || continue
    say "messages that the wheels lack: $name (CMake)"
    build "$name" "$root/cmake/$name"
  done
}

check() {
  "$env/bin/python" -c 'import rclpy, casadi, scipy; from mbse_ros.msg import SensorSegment; SensorSegment()' \
    >>"$log" 2>&1 || fail 'importing rclpy and mbse_ros.msg'
}

# What the venv and its packages depend on: while it stays the same only the build is repeated.
packages_fingerprint() {
  echo "$root ${AMENT_PREFIX_PATH/#"$env"/"$link"}"
  sha256sum "${lists[@]}"
}

# The venv of the environment before, with what somebody has installed into it, where its lists are still the same.
take_packages() {
  local before
  [[ -r $link/.packages_from && $packages == "$(<"$link/.packages_from")" ]] || return 1
  before=$(readlink -f "$link")
  say 'ROS 2 and Python packages of the environment before'
  rm -rf "$env.part"
  cp -a --reflink=auto "$before" "$env.part" 2>>"$log" || return 1
  rm -rf "$env.part"/{.made_from,build,bytecode}
  grep -rlIF --exclude-dir=site-packages "$before" "$env.part" | "$env.part/bin/python" -c '
import pathlib, sys
before, after = sys.argv[1:]
for path in map(pathlib.Path, sys.stdin.read().splitlines()):
    path.write_text(path.read_text().replace(before, after))' "$before" "$env" || return 1
  mv "$env.part" "$env"
}

# All of it; after an interruption it continues behind the packages.
make_all() {
  local packages
  system_packages
  packages=$(packages_fingerprint)
  if [[ ! -e $env/.packages_from ]]; then
    rm -rf "$env"
    if ! take_packages; then
      virtual_environment
      python_packages
    fi
    printf '%s\n' "$packages" >"$env/.packages_from"
  fi
  rm -rf "$env/build" "$env"/lib/python3.*/site-packages/mbse_ros
  missing_messages
  say 'messages and package (CMake)'
  build mbse_ros "$root" -DMBSE_ROS_DEVELOP=ON
  check
  printf '%s\n' "$fingerprint" >"$env/.made_from"
}

lock
: >"$log"
say "making ${link#"$root/"}"
[[ -e $env/.made_from ]] || make_all        # it may be one of before that something still uses
tools/switch_environment.sh "$link" "$env"
say "ready: ${link#"$root/"}"
