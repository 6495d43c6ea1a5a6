#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A browser for the test of the report page: installed when root on Debian, else a hint; the test skips without one.
set -euo pipefail
for browser in chromium chromium-browser google-chrome; do
  ! command -v "$browser" >/dev/null || exit 0
done
if [[ $(id -u) -eq 0 ]] && grep -qs '^ID=debian' /etc/os-release; then
  "${BASH_SOURCE[0]%/*}/system_packages.sh" chromium && exit 0
fi
echo 'mbse_ros: no browser found, the test of the report page will be skipped (Debian: apt-get install chromium)' >&2
