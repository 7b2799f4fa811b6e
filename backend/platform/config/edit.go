package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// File is config.json of a home, for callers that show the settings before a change.
type File struct{ Home Home }

// Read returns the settings and the file's revision, which changes with every byte
// of the file. It fails as Home.Config does.
func (f File) Read() (Config, string, error) {
	raw, config, err := readConfig(f.Home)
	if err != nil {
		return Config{}, "", err
	}
	return config, revisionOf(raw), nil
}

func revisionOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Plan prepares a change as [Home.UpdateConfig] does, but does not write;
// [ConfigEdit.Save] does. It fails with Conflict if the file has another revision.
func (f File) Plan(revision string, change func(*Config) error) (ConfigEdit, error) {
	edit, err := planConfig(f.Home, func(c *Config, raw []byte) error {
		if revisionOf(raw) != revision { // before change is checked against another file
			return errChangedMeanwhile
		}
		return change(c)
	})
	if err != nil {
		return ConfigEdit{}, err
	}
	return edit, nil
}

// ConfigEdit is a prepared, unsaved change of config.json.
type ConfigEdit struct {
	Before, After Config

	home        Home
	raw, edited []byte
}

var errChangedMeanwhile = bridge.Errorf(bridge.Conflict, "config.json was changed meanwhile and is left as it is: look at what it says now, and save again")

func planConfig(h Home, change func(c *Config, raw []byte) error) (ConfigEdit, error) {
	raw, before, err := readConfig(h)
	if err != nil {
		return ConfigEdit{}, err
	}
	after := before
	after.Agents = maps.Clone(before.Agents)
	if err := change(&after, raw); err != nil {
		return ConfigEdit{}, err
	}
	if err := after.check(); err != nil {
		return ConfigEdit{}, bridge.Errorf(bridge.Invalid, "config.json is left unchanged: %w", err)
	}
	edited, err := patch(raw, before, after)
	if err != nil {
		return ConfigEdit{}, bridge.Errorf(bridge.Internal, "config.json is left unchanged: %w", err)
	}
	return ConfigEdit{Before: before, After: after, home: h, raw: raw, edited: edited}, nil
}

// Save writes the change. It fails with Conflict if the file changed since it was
// read, and with Storage if it cannot be written. A symlink stays a symlink, and an
// irreplaceable file is written in place.
func (e ConfigEdit) Save() error {
	if bytes.Equal(e.raw, e.edited) {
		return nil
	}
	present, _, err := readConfig(e.home)
	if err != nil {
		return err
	}
	if !bytes.Equal(present, e.raw) {
		return errChangedMeanwhile
	}
	target, err := disk.CanonicalTarget(e.home.ConfigFile())
	if err == nil {
		err = disk.Files{}.Overwrite(target, e.edited, disk.PrivateFile, e.home.Dir())
	}
	if err != nil {
		return bridge.WithCause(bridge.Storage, err, "config.json could not be saved: "+disk.WhyNotWritten(err))
	}
	return nil
}
