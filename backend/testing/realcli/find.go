// Package realcli holds the tests of Bridge with the real agent CLIs (claude, codex,
// opencode): no account, no network, an empty home, and a scripted model on loopback in
// place of the vendor's. It finds the installed binaries and runs each test in
// namespaces of its own; package scripted does the rest.
package realcli

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/cpu"

	"bridge/backend/agent/prove/scripted"
)

// InstallCommand is what a person runs to get the CLIs.
const InstallCommand = "go run ./build clis"

// FindCLIs looks for the CLIs under dir: in one node_modules for all, or in a
// folder for each (dir/claude/node_modules and so on). The error names every
// CLI that is missing.
func FindCLIs(dir string) (scripted.CLIs, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return scripted.CLIs{}, fmt.Errorf("finding the CLIs: %w", err)
	}
	platform := runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	opencode := "opencode-" + platform
	if runtime.GOARCH == "amd64" && !cpu.X86.HasAVX2 {
		opencode += "-baseline"
	}
	var missing []error
	find := func(kind, pattern string) string {
		for _, root := range []string{dir, filepath.Join(dir, kind)} {
			if found, _ := filepath.Glob(filepath.Join(root, "node_modules", pattern)); len(found) > 0 {
				return found[0]
			}
		}
		missing = append(missing, fmt.Errorf("no %s under %s: install it with `%s`", kind, dir, InstallCommand))
		return ""
	}
	clis := scripted.CLIs{
		Claude:   find("claude", "@anthropic-ai/claude-code-"+platform+"/claude"),
		Codex:    find("codex", "@openai/codex-"+platform+"/vendor/*/bin/codex"),
		OpenCode: find("opencode", opencode+"/bin/opencode"),
	}
	return clis, errors.Join(missing...)
}
