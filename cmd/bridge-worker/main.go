// Command bridge-worker is what runs beside an agent: the MCP server of a session, the
// companion of a plugin, the runner of a delegated job. Bridge starts it; what it does a
// person can start as `bridge mcp` and the like.
package main

import (
	"os"
	"runtime/debug"
	"time"

	"bridge/backend/worker"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.29.16"

func main() {
	debug.FreeOSMemory() // what packages have used to get ready, most of it a library's own schemas
	os.Exit(worker.Main(version, time.Now))
}
