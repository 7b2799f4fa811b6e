// Package docs holds the pages that the programs show themselves, without a network.
package docs

import (
	"embed"
	"io/fs"
)

//go:embed storage.md guide/jobs.md teams/hub.md reference/config.md reference/environment.md reference/exit-codes.md reference/files.md reference/targets.md
var pages embed.FS

// Pages returns the pages of `bridge help TOPIC`, by their paths below docs.
func Pages() fs.FS { return pages }
