// Package shellenv asks the owner's login shell for the environment that it gives to
// programs: that of the owner's own terminal, with keys, proxies and toolchains, which a
// service and a program that a desktop starts never see (JOB-28). Values are handed on in
// memory and in the environment of a process, and written nowhere.
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

// Timeout is how long a shell may take (JOB-28).
const Timeout = 5 * time.Second

// Question is what is asked.
type Question struct {
	Shell   string   // absolute path of the owner's login shell
	Program []string // prints the environment that it is started with, by Print; the mark is added
	Environ []string // NAME=value that the shell is started with
	Home    string   // the folder that it begins in
}

// Asking stands in the environment of the shell while it is asked: what its own files
// would do in a terminal, such as to become another program, they can leave out by it.
const Asking = "BRIDGE_ASKS_THE_SHELL"

// Ask returns the environment as NAME=value, without what is about the shell itself. Behind
// the folders of its PATH come those that only the PATH of q.Environ has: a login shell
// begins with a PATH of the system's, without what a container's image had put there. It
// takes no longer than Timeout, and leaves nothing running.
func Ask(ctx context.Context, q Question) ([]string, error) {
	said, err := ask(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("ask the login shell %s for its environment: %w", q.Shell, err)
	}
	said = slices.DeleteFunc(said, func(pair string) bool {
		name, _, ok := strings.Cut(pair, "=")
		return !ok || name == "" || slices.Contains(ofTheShell, name)
	})
	return alsoFind(said, q.Environ), nil
}

// alsoFind adds to the PATH of an environment the folders that only another one's has.
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

// isPath knows it also as Windows writes it.
func isPath(pair string) bool {
	return strings.HasPrefix(pair, path) || runtime.GOOS == "windows" && len(pair) > len(path) && strings.EqualFold(pair[:len(path)], path)
}

// ofTheShell are variables that say something of the shell's own process.
var ofTheShell = []string{"PWD", "OLDPWD", "SHLVL", "_", Asking}

// Print writes an environment between two marks, whatever the shell's files print before
// and behind it.
func Print(to io.Writer, mark string, environ []string) error {
	var b bytes.Buffer
	b.WriteString(mark + "\x00")
	for _, pair := range environ {
		b.WriteString(pair + "\x00")
	}
	b.WriteString(mark + "\x00")
	_, err := to.Write(b.Bytes())
	return err
}
