#!/bin/sh
# The hub ends cleanly before its program goes. An upgrade leaves it alone. What it
# keeps, in /var/lib/bridge-hub, is never touched.
set -e
program="${DPKG_ROOT:-}/usr/bin/bridge-hub"
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now bridge-hub.service || true
fi
for process in /proc/[0-9]*; do
    [ "$process/root/." -ef /. ] || continue # a container has its own
    case "$(readlink "$process/exe" 2>/dev/null)" in
    "$program" | "$program (deleted)") ;;
    *) continue ;;
    esac
    case "$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null)" in
    *" serve"*) kill -TERM "${process#/proc/}" 2>/dev/null || true ;;
    esac
done
exit 0
