// Package frontend holds the built dashboard page, so that one copy of it
// serves the browser on localhost and the native window alike.
package frontend

import (
	"embed"
	"io/fs"
)

// dist is what `npm run build` wrote. In a checkout without a built page it
// holds only .gitkeep, and the Go packages still build and test without Node.
//
//go:embed all:dist
var dist embed.FS

// Page returns the built page with index.html at its root. Where the page was
// never built, the file system has no index.html and the server says so.
func Page() fs.FS {
	page, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // only an invalid path fails, and this one is a constant
	}
	return page
}
