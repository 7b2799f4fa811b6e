// Command bridge-hub is a team's hub: NATS JetStream with what Bridge needs of it, for
// a machine that is always on. The PCs of the team carry its client only.
package main

import (
	"context"
	"os"
	"time"

	"bridge/backend/doors/hubcli"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.29.16"

func main() {
	app := &hubcli.App{Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Now: time.Now, Version: version}
	os.Exit(app.Run(context.Background()))
}
