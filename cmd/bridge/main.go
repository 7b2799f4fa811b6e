// Command bridge is Bridge without a screen: broker, dashboard, MCP server,
// hooks and everything a person types.
package main

import (
	"context"
	"os"
	"time"

	"bridge/backend/doors/cli"
	"bridge/docs"
	"bridge/frontend"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.29.16"

func main() {
	app := &cli.App{
		Args:    os.Args[1:],
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Getenv:  os.Getenv,
		Now:     time.Now,
		Page:    frontend.Page(),
		Manual:  docs.Pages(),
		Version: version,
	}
	os.Exit(app.Run(context.Background()))
}
