package driver

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"bridge/backend/agent/driver/run"
	"bridge/backend/core/job"
)

// The permission profiles of codex for a job of a paired PC. They bound what commands
// read, which the sandbox policies of a turn cannot (SEC-04). The first only reads.
const (
	readingProfile = "bridge-read"
	writingProfile = "bridge-write"
)

// profileFlags returns the arguments that define these profiles, none for a job of this PC.
func profileFlags(spec job.Spec, env run.Environ) []string {
	if !spec.Unlinked {
		return nil
	}
	var programs []string
	for _, path := range run.Programs(spec, env) {
		if _, err := os.Stat(path); err == nil { // codex fails at one that is not there
			programs = append(programs, path)
		}
	}
	writable := append([]string{spec.Folder, run.Temporary(spec)}, spec.Writable...)
	flags := []string{"-c", "default_permissions=" + tomlString(readingProfile)}
	for profile, access := range map[string]string{readingProfile: "read", writingProfile: "write"} {
		allowed := map[string]string{":minimal": "read"}
		for _, path := range programs {
			allowed[path] = "read"
		}
		for _, path := range writable {
			allowed[path] = access
		}
		var entries []string
		for _, path := range slices.Sorted(maps.Keys(allowed)) {
			entries = append(entries, tomlString(path)+"="+tomlString(allowed[path]))
		}
		flags = append(flags, "-c", "permissions."+profile+".filesystem={"+strings.Join(entries, ",")+"}", "-c", "permissions."+profile+".network={enabled=false}")
	}
	return flags
}

// tomlString quotes text as a basic string of TOML, whose escapes for paths are those of Go.
func tomlString(text string) string { return strconv.Quote(text) }
