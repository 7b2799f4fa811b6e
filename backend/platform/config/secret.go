package config

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"syscall"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// Secret is a value that proves something. It prints, logs and formats as
// "[secret]" (AUT-03); string(s) gives the value to whoever must use it.
type Secret string

// String hides the value.
func (Secret) String() string { return "[secret]" }

// GoString hides the value from %#v.
func (Secret) GoString() string { return "[secret]" }

// LogValue hides the value from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// MarshalText hides the value from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// A secret file holds one line of 130 random bits in base 32; the bounds accept
// what other versions may have written.
const (
	minSecretChars = 16
	maxSecretChars = 512
)

// Token returns the home's token, made on first use. Of several processes that
// ask at once all get the same one. The home must be Ensured.
func (h Home) Token() (Secret, error) { return loadOrCreate(h.TokenFile()) }

// LaunchSecret returns the dashboard's secret, made on first use like Token.
func (h Home) LaunchSecret() (Secret, error) { return loadOrCreate(h.LaunchSecretFile()) }

// ExistingToken returns the home's token and makes nothing. Without one it is
// NotFound: no bridge has ever run in this home.
func (h Home) ExistingToken() (Secret, error) {
	secret, err := loadSecret(h.TokenFile())
	if errors.Is(err, syscall.ENOTDIR) {
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
	// Ours or another process's that was quicker: what is on the disk counts.
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

// closeToOthers takes the rights of others away that a copy or restore by hand
// may have given; on Windows the folder's own rights do that.
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
