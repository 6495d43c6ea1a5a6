#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install Debian/Ubuntu packages when root, else say in one line what to type and fail.
#   tools/system_packages.sh PACKAGE...
set -euo pipefail
if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "mbse_ros: system packages are missing; type: sudo apt-get install $*" >&2
  exit 1
fi
echo "mbse_ros: apt-get install $*" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A network that fails, another one who installs; and a repository that does not answer is not a reason to stop.
patient=(-o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
apt-get update -qq "${patient[@]}" </dev/null >"$log" 2>&1 || true
apt-get install -y -qq "${patient[@]}" --no-install-recommends "$@" </dev/null >>"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  echo "mbse_ros: apt-get install $* failed" >&2
  exit 1
}
