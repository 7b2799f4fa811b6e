package setup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bridge/backend/platform/disk"
)

// codexAskTimeout is the timeout of the query to codex, which answers in 0.2 s.
const codexAskTimeout = 15 * time.Second

// codexQuiet is the configuration of the temporary codex home for the query. It
// disables network access, and ignores the folders above it, in which others may
// write (SEC-13).
const codexQuiet = `check_for_update_on_startup = false
project_root_markers = []
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
[features]
plugins = false
remote_plugin = false
apps = false
daemon_auto_start = false
`

// codexTrust returns the entries of config.toml that mark Bridge's hooks as
// trusted. codex runs no hook whose definition has another checksum than the
// trusted one, and only codex can compute it. So a codex with a temporary home
// reads the future hooks.json and reports each hook's checksum. The checksum does
// not depend on the file's path, only its key does.
func (in Input) codexTrust(ctx context.Context, hooks document, before *installed) ([]part, error) {
	if in.CLI.Path == "" {
		return nil, errors.New("codex was not found")
	}
	current, target, _, err := readConfig(hooks.path)
	if err != nil {
		return nil, err
	}
	planned, err := hooks.format.merge(current, hooks, before.file(hooks.path).parts())
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bridge-codex-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system's temporary folder: what stays is swept there
	if dir, err = disk.Canonical(dir); err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{"hooks.json": planned, "config.toml": []byte(codexQuiet)} {
		if err := disk.WriteAtomic(filepath.Join(dir, name), data, disk.PrivateFile); err != nil {
			return nil, err
		}
	}
	listed, err := in.askCodex(ctx, dir)
	if err != nil {
		return nil, err
	}
	return trustParts(listed, hooks, filepath.Join(dir, "hooks.json"), target)
}

// trustParts keeps Bridge's hooks of those that codex listed for the file asked,
// and writes each under every spelling of the real file's path.
func trustParts(listed []codexHook, hooks document, asked, target string) ([]part, error) {
	ours := map[string]bool{}
	for _, p := range hooks.parts {
		var group hookGroup
		if err := json.Unmarshal(p.Value, &group); err != nil {
			return nil, fmt.Errorf("reading our own hooks: %w", err)
		}
		ours[group.Hooks[0].Command] = true
	}
	paths := slices.Compact(slices.Sorted(slices.Values([]string{hooks.path, target})))
	var parts []part
	for _, hook := range listed {
		position, isThere := strings.CutPrefix(hook.Key, asked)
		if !isThere || hook.CurrentHash == "" || !ours[hook.Command] {
			continue
		}
		for _, path := range paths {
			parts = append(parts, part{
				Path:  []string{"hooks", "state", path + position},
				Value: encode(map[string]string{"trusted_hash": hook.CurrentHash}),
				Ours:  true,
			})
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("it listed none of them")
	}
	return parts, nil
}

// codexHook is one hook in codex's hooks/list.
type codexHook struct {
	Key         string `json:"key"`
	Command     string `json:"command"`
	CurrentHash string `json:"currentHash"`
	TrustStatus string `json:"trustStatus"`
}

// askCodex starts `codex app-server` with home as its CODEX_HOME and returns the
// hooks there.
func (in Input) askCodex(ctx context.Context, home string) ([]codexHook, error) {
	ctx, cancel := context.WithTimeout(ctx, codexAskTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, in.CLI.Path, "app-server")
	cmd.Env, cmd.Dir = in.Environ, home
	cmd.Env = append(cmd.Environ(), "CODEX_HOME="+home)
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("asking codex: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("asking codex: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("it did not start: %w", err)
	}
	hooks, err := converse(json.NewEncoder(stdin), bufio.NewReader(stdout), home)
	_ = stdin.Close() // makes it end
	cancel()          // enforces its end
	_ = cmd.Wait()    // its exit status does not matter after its answer
	return hooks, err
}

// converse exchanges the app-server's JSON lines: initialize, then hooks/list.
func converse(encoder *json.Encoder, from *bufio.Reader, cwd string) ([]codexHook, error) {
	type object = map[string]any
	if err := encoder.Encode(object{"id": 1, "method": "initialize", "params": object{
		"clientInfo":   object{"name": "bridge", "title": "Bridge", "version": "1"},
		"capabilities": object{"experimentalApi": true},
	}}); err != nil {
		return nil, fmt.Errorf("it does not listen: %w", err)
	}
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return nil, errors.New("it ended without an answer")
		}
		var reply struct {
			ID     int `json:"id"`
			Result struct {
				Data []struct {
					Hooks []codexHook `json:"hooks"`
				} `json:"data"`
			} `json:"result"`
			Error *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(line, &reply) != nil {
			continue // another message
		}
		switch {
		case reply.Error != nil:
			return nil, errors.New(reply.Error.Message)
		case reply.ID == 1:
			if err := errors.Join(
				encoder.Encode(object{"method": "initialized"}),
				encoder.Encode(object{"id": 2, "method": "hooks/list", "params": object{"cwds": []string{cwd}}}),
			); err != nil {
				return nil, fmt.Errorf("it does not listen: %w", err)
			}
		case reply.ID == 2:
			var hooks []codexHook
			for _, folder := range reply.Result.Data {
				hooks = append(hooks, folder.Hooks...)
			}
			return hooks, nil
		}
	}
}
