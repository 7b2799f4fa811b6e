// Package shellenv queries the owner's login shell for the environment of the
// owner's own terminal. Services and programs started by a desktop lack its keys,
// proxies and toolchains (JOB-28). Values stay in memory and in the environment of
// a process; they are never written to a file.
package shellenv

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Timeout is the timeout for a shell (JOB-28).
const Timeout = 5 * time.Second

// Question is a query to the login shell.
type Question struct {
	Shell   string   // absolute path of the owner's login shell
	Program []string // prints its own environment with Print; the mark is added as the last argument
	Environ []string // NAME=value: the shell's start environment
	Home    string   // the shell's start folder
}

// Asking is set in the shell's environment during the query. The shell's startup
// files can then skip steps for terminals, such as starting another program.
const Asking = "BRIDGE_ASKS_THE_SHELL"

// Ask returns the environment as NAME=value, without the shell's own variables. It
// appends to the PATH the folders that only q.Environ has, because a login shell
// starts with the system's PATH, without the folders of a container's image. It
// fails after Timeout, and leaves no process running.
func Ask(ctx context.Context, q Question) ([]string, error) {
	output, err := ask(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("ask the login shell %s for its environment: %w", q.Shell, err)
	}
	output = slices.DeleteFunc(output, func(pair string) bool {
		name, _, ok := strings.Cut(pair, "=")
		return !ok || name == "" || slices.Contains(ofTheShell, name)
	})
	return alsoFind(output, q.Environ), nil
}

// alsoFind appends to the PATH of environ the folders that only the PATH of other has.
func alsoFind(environ, other []string) []string {
	at, from := slices.IndexFunc(environ, isPath), slices.IndexFunc(other, isPath)
	switch {
	case from < 0:
		return environ
	case at < 0:
		return append(environ, other[from])
	}
	folders := filepath.SplitList(environ[at][len(path):])
	for _, folder := range filepath.SplitList(other[from][len(path):]) {
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	environ[at] = path + strings.Join(folders, string(filepath.ListSeparator))
	return environ
}

const (
	pathName = "PATH"
	path     = pathName + "="
)

// isPath reports whether the pair is PATH, also in Windows' spelling.
func isPath(pair string) bool {
	return strings.HasPrefix(pair, path) || runtime.GOOS == "windows" && len(pair) > len(path) && strings.EqualFold(pair[:len(path)], path)
}

// ofTheShell lists the variables about the shell's own process.
var ofTheShell = []string{"PWD", "OLDPWD", "SHLVL", "_", Asking}

// Print writes an environment between two marks, so that output of the shell's
// startup files is separable. It fails if to refuses the write.
func Print(writer io.Writer, mark string, environ []string) error {
	var b bytes.Buffer
	b.WriteString(mark + "\x00")
	for _, pair := range environ {
		b.WriteString(pair + "\x00")
	}
	b.WriteString(mark + "\x00")
	_, err := writer.Write(b.Bytes())
	return err
}
