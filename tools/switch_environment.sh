#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Let a name stand for another folder at once, and remove the folders that it stood for and that nothing uses.
#   tools/switch_environment.sh LINK FOLDER     (called by make_environment.sh; FOLDER is LINK.something)
# A process keeps the folder it was started in: environment.sh resolves the name first, and holds a lock in the folder.
set -euo pipefail
link=$1 folder=$2

[[ -L $link || ! -d $link ]] || mv -fT "$link" "$link.before"      # made by a version that had no link
ln -sfn "${folder##*/}" "$link.new"
mv -fT "$link.new" "$link"

for old in "$link".*/; do
  old=${old%/}
  [[ $old != "$folder" ]] || continue
  (
    if [[ -e $old/.made_from ]]; then
      exec 8<"$old/.made_from"
      flock -n 8 || exit 0
    fi
    if grep -qsF "$old/" /proc/[0-9]*/maps; then exit 0; fi         # started without environment.sh
    rm -f "$old/.made_from"     # first: who waits for the lock sees that the folder has gone
    rm -rf "$old"
  )
done
