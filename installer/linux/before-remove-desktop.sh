#!/bin/sh
# The app ends cleanly before its program goes. An upgrade leaves it alone.
set -e
program="${DPKG_ROOT:-}/usr/lib/bridge/bridge-desktop"
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
for process in /proc/[0-9]*; do
    [ "$process/root/." -ef /. ] || continue # a container has its own
    case "$(readlink "$process/exe" 2>/dev/null)" in
    "$program" | "$program (deleted)") kill -TERM "${process#/proc/}" 2>/dev/null || true ;;
    esac
done
exit 0
