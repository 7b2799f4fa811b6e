#!/bin/sh
# Brokers end cleanly before their program goes. An upgrade leaves them alone.
# What they keep, in ~/.bridge of each owner, is never touched.
set -e
program="${DPKG_ROOT:-}/usr/lib/bridge/bridge"
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
for process in /proc/[0-9]*; do
    [ "$process/root/." -ef /. ] || continue # a container has its own
    case "$(readlink "$process/exe" 2>/dev/null)" in
    "$program" | "$program (deleted)") ;;
    *) continue ;;
    esac
    case "$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null)" in
    *" serve"* | *" service run"*) kill -TERM "${process#/proc/}" 2>/dev/null || true ;;
    esac
done
exit 0
