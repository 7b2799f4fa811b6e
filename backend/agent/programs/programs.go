// Package programs returns the programs of Bridge that the settings of connected
// agents start, from the record of the connections.
package programs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// InstallFile records the connected agents and their programs; its path is relative
// to the home.
const InstallFile = "install/install.json"

// installBytes bounds the size of that file.
const installBytes = 16 << 20

// Gone returns, for each agent connected to the home dir, a missing program of
// Bridge that its settings start. A missing InstallFile means that no agent is
// connected.
func Gone(dir string) (map[bridge.AgentKind]string, error) {
	var manifest struct {
		Kinds map[bridge.AgentKind]*struct {
			Bridge string          `json:"bridge"` // the program in the settings
			Files  json.RawMessage `json:"files"`  // the written parts of each file
		} `json:"kinds"`
	}
	err := disk.ReadJSON(filepath.Join(dir, filepath.FromSlash(InstallFile)), installBytes, &manifest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	gone := map[bridge.AgentKind]string{}
	for kind, entry := range manifest.Kinds {
		if entry == nil || entry.Bridge == "" {
			continue
		}
		programs := []string{entry.Bridge}
		if bytes.Contains(entry.Files, []byte(hookProgram)) {
			programs = append(programs, filepath.Join(filepath.Dir(entry.Bridge), hookProgram+filepath.Ext(entry.Bridge)))
		}
		for _, program := range programs {
			if isGone(program) {
				gone[kind] = program
				break
			}
		}
	}
	return gone, nil
}

// isGone reports whether path is missing. An unreadable path counts as existing.
func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// hookProgram returns the program next to bridge that hooks start, if it exists.
const hookProgram = "bridge-hook"
