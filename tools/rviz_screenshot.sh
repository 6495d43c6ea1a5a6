#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A picture of RViz with a simulated machine, without a screen: out/rviz.png. Needs rviz2, xvfb, imagemagick, and the
# package from `make colcon` or a sourced workspace.
#   tools/rviz_screenshot.sh [MACHINE]      (default: zx200)
set -eo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ! -e out/colcon/install/setup.bash ]] || source out/colcon/install/setup.bash    # reads variables that are not set
if [[ -z ${DISPLAY_OF_SCREENSHOT:-} ]]; then
  export DISPLAY_OF_SCREENSHOT=1 LIBGL_ALWAYS_SOFTWARE=1
  exec xvfb-run -a -s '-screen 0 1280x960x24' "${BASH_SOURCE[0]}" "$@"
fi
mkdir -p out
ros2 launch mbse_ros machine.launch.py "machine:=${1:-zx200}" outputs:=true rviz:=true &
graph=$!
trap 'kill -INT "$graph" 2>/dev/null; wait "$graph" || true' EXIT
# A window without a model has a few hundred colours at most; lit solids have thousands.
for _ in {1..60}; do
  sleep 2
  kill -0 "$graph" || { echo 'mbse_ros: the graph has ended' >&2; exit 1; }
  import -window root out/rviz.png
  colours=$(identify -format %k out/rviz.png)
  [[ $colours -lt 1000 ]] || { echo "out/rviz.png: $colours colours"; exit 0; }
done
echo "mbse_ros: no model in out/rviz.png after 2 minutes ($colours colours)" >&2
exit 1
