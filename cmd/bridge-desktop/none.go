//go:build !desktop || (!linux && !windows)

// Command bridge-desktop is Bridge on a desktop. This build of it is empty: the
// window needs the build tags and the system libraries of its toolkit.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bridge-desktop: this build has no window: build it with `go run ./build desktop` (Linux, Windows); `bridge open` shows the dashboard in a browser")
	os.Exit(1)
}
