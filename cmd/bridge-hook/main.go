// Command bridge-hook serves one call of an agent's hook and nothing else: JSON
// on standard input, the host's JSON on standard output. Every agent starts it
// after each tool call, so it links as little as it can; what needs more is the
// long form's matter, `bridge hook`.
package main

import (
	"os"
	"time"

	"bridge/backend/doors/hook"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.29.16"

func main() { os.Exit(hook.Main(version, time.Now)) }
