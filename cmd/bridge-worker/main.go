// Command bridge-worker is the runner of a delegated job, and the floor under its agent.
// Bridge starts it.
package main

import (
	"os"
	"time"

	"bridge/backend/doors/worker/runjob"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.29.16"

func main() { os.Exit(runjob.Main(version, time.Now, nil)) }
