#!/bin/sh
# Stands in for the go command when `wails build` builds the app: Wails names no
# package and looks for its own resources in the checkout's root.
#   wails build -m -nosyncgomod -skipbindings -tags webkit2_41 -compiler "$PWD/build/gobuild.sh"
[ "$1" = build ] || exec go "$@"
trap 'rm -f cmd/bridge-desktop/*-res.syso' EXIT
for resource in ./*-res.syso; do
    [ -f "$resource" ] && cp "$resource" cmd/bridge-desktop/
done
go "$@" ./cmd/bridge-desktop
