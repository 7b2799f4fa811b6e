#!/bin/sh
# Services of the machine go over to the new version: every message is on the
# disk before its sender hears of it, and sessions find the new broker by
# themselves. Brokers of people who are at work are left to them.
set -e
[ -d /run/systemd/system ] || exit 0
for unit in /etc/systemd/system/bridge-*.service; do
    [ -f "$unit" ] && grep -q '^ExecStart="/usr/lib/bridge/bridge"' "$unit" || continue
    systemctl try-restart "$(basename "$unit")" || true
done
exit 0
