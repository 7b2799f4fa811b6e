// Command bridge-mcp is what runs beside a session: its MCP server and the companion of its
// agent's plugin. Bridge starts it; what it does a person can start as `bridge mcp`.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"bridge/backend/doors/worker/mcp"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.29.16"

func main() {
	runtime.GOMAXPROCS(1) // it passes words on: more would wake each other for every one of them
	debug.FreeOSMemory()  // what packages have used to get ready, most of it a library's own schemas
	os.Exit(mcp.Main(version, time.Now))
}
