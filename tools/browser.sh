#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A browser for the tests of the report and of the operator's page, and a Japanese font for it: installed when root on
# Debian, else a hint; the tests skip without one.
set -euo pipefail
for browser in chromium chromium-browser google-chrome; do
  ! command -v "$browser" >/dev/null || exit 0
done
if [[ $(id -u) -eq 0 ]] && grep -qs '^ID=debian' /etc/os-release; then
  "${BASH_SOURCE[0]%/*}/system_packages.sh" chromium fonts-ipafont-gothic && exit 0
fi
echo 'mbse_ros: no browser found, the tests of the pages will be skipped (Debian: apt-get install chromium)' >&2
