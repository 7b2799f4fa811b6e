package config

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Secret is a secret value. It prints, logs and formats as "[secret]" (AUT-03).
// string(s) returns the value for the code that needs it.
type Secret string

// String hides the value.
func (Secret) String() string { return "[secret]" }

// GoString hides the value from %#v.
func (Secret) GoString() string { return "[secret]" }

// LogValue hides the value from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// MarshalText hides the value from encoders. It never fails.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// A secret file holds one line of 130 random bits in base 32. The bounds also
// accept the secrets of other versions.
const (
	minSecretChars = 16
	maxSecretChars = 512
)

// Token returns the home's token and creates it on first use. Concurrent processes
// get the same one. The home must be Ensured. It fails with Storage.
func (h Home) Token() (Secret, error) { return loadOrCreate(h.TokenFile()) }

// LaunchSecret returns the dashboard's secret and creates it on first use. It fails
// as Token does.
func (h Home) LaunchSecret() (Secret, error) { return loadOrCreate(h.LaunchSecretFile()) }

// ExistingToken returns the home's token and creates nothing. It fails with
// NotFound if there is no token, because no bridge has run in this home.
func (h Home) ExistingToken() (Secret, error) {
	secret, err := loadSecret(h.TokenFile())
	if h.isFile(err) {
		return "", errIsFile(h)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", bridge.Errorf(bridge.NotFound, "the home folder %s has no token yet: no bridge has run there", h.dir)
	}
	return secret, err
}

func loadOrCreate(path string) (Secret, error) {
	secret, err := loadSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	err = disk.WriteNew(path, []byte(rand.Text()+"\n"), disk.PrivateFile)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", bridge.Errorf(bridge.Storage, "the secret file %s cannot be made: %w", path, err)
	}
	// The file on the disk counts, whether this process or a faster one wrote it.
	return loadSecret(path)
}

func loadSecret(path string) (Secret, error) {
	data, err := disk.ReadLimited(path, maxSecretChars)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil && !errors.Is(err, disk.ErrTooLarge) {
		return "", bridge.Errorf(bridge.Storage, "the secret file %s cannot be read: %w", path, err)
	}
	text := strings.TrimSpace(string(data))
	if err != nil || len(text) < minSecretChars || strings.ContainsFunc(text, notPrintable) {
		return "", bridge.Errorf(bridge.Storage, "the secret file %s is damaged: stop all bridge processes and remove it, a new one is made", path)
	}
	return Secret(text), closeToOthers(path)
}

// closeToOthers removes permissions of others that a manual copy or restore may
// have set. On Windows the folder's permissions protect the file.
func closeToOthers(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		err = os.Chmod(path, disk.PrivateFile)
	}
	if err != nil {
		return bridge.Errorf(bridge.Storage, "the secret file %s cannot be made private: %w", path, err)
	}
	return nil
}

func notPrintable(r rune) bool { return r <= ' ' || r > '~' }
