#!/bin/sh
# The hub has a user of its own. One that runs goes over to the new version: what it
# acknowledged is on the disk, and its PCs come back by themselves.
set -e
if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers ${DPKG_ROOT:+--root="$DPKG_ROOT"} bridge-hub.conf
fi
[ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart bridge-hub.service || true
exit 0
