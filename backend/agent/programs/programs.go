// Package programs knows which programs of Bridge's the settings of connected agents start,
// by what was written down when they were connected.
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

// InstallFile says which agents are connected, and by which program; it is relative to
// the home.
const InstallFile = "install/install.json"

// installBytes bounds that file.
const installBytes = 16 << 20

// Gone returns for each agent that is connected to the home dir a program of
// Bridge's that its settings start and that is not there any more. A missing file means
// that none is connected.
func Gone(dir string) (map[bridge.AgentKind]string, error) {
	var manifest struct {
		Kinds map[bridge.AgentKind]*struct {
			Bridge string          `json:"bridge"` // the program that the settings name
			Files  json.RawMessage `json:"files"`  // what was written into which file
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

// isGone reports whether nothing is at path. What cannot be looked at counts as there.
func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// hookProgram is the program beside bridge that hooks start, where it is there.
const hookProgram = "bridge-hook"
