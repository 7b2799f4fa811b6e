package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

const userHomeVariable = "USERPROFILE"

func foldPath(path string) string { return strings.ToLower(path) }

func socketOf(h Home, name string) string { return `\\.\pipe\bridge-` + name + "-" + h.Key() }

// Ensure creates a missing home folder, open only to this user, the system and
// administrators. It fails with Denied if another user owns the home, and else with
// Invalid or Storage. A failed Ensure has changed nothing.
func (h Home) Ensure() error {
	info, err := os.Stat(h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return makeHome(h)
	}
	if err != nil {
		return bridge.Errorf(bridge.Storage, "the home folder %s cannot be looked at: %w", h.dir, err)
	}
	if !info.IsDir() {
		return errIsFile(h)
	}
	ours, err := isOurs(h.dir)
	if err != nil {
		return bridge.Errorf(bridge.Storage, "the owner of the home folder %s is unknown: %w", h.dir, err)
	}
	if !ours {
		return bridge.Errorf(bridge.Denied, "the home folder %s belongs to another user: run as that user or choose another folder with --home or BRIDGE_HOME", h.dir)
	}
	return CheckContents(h)
}

// CheckOwner does nothing on Windows and never fails: Ensure checks the owner of
// Bridge's own folder, and other new files inherit the permissions of their folder.
func CheckOwner(string) error { return nil }

// CheckSocket does nothing on Windows and never fails: the pipe's security
// descriptor limits who may have created it.
func (h Home) CheckSocket() error { return nil }

// makeHome creates the folder, open only to this user, the system and administrators.
func makeHome(h Home) error {
	if err := disk.MakeDir(filepath.Dir(h.dir)); err != nil {
		return bridge.Errorf(bridge.Storage, "the home folder %s cannot be made: %w", h.dir, err)
	}
	self, err := currentUser()
	if err != nil {
		return bridge.Errorf(bridge.Internal, "the current user is unknown: %w", err)
	}
	// D:P blocks inherited permissions; OICI passes these permissions on to the contents.
	rights := fmt.Sprintf("D:P(A;OICI;FA;;;%s)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)", self)
	descriptor, err := windows.SecurityDescriptorFromString(rights)
	if err != nil {
		return bridge.Errorf(bridge.Internal, "the home folder's rights cannot be expressed: %w", err)
	}
	attributes := windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	name, err := windows.UTF16PtrFromString(h.dir)
	if err != nil {
		return bridge.Errorf(bridge.Invalid, "the home folder's path is not valid: %w", err)
	}
	err = windows.CreateDirectory(name, &attributes)
	if err != nil && !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return bridge.Errorf(bridge.Storage, "the home folder %s cannot be made: %w", h.dir, err)
	}
	return nil
}

// isOurs accepts as owner the user and the groups that own an elevated user's or a
// service's files. If this process is the system, it accepts every owner.
func isOurs(dir string) (bool, error) {
	descriptor, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return false, err
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return false, err
	}
	self, err := currentUser()
	if err != nil {
		return false, err
	}
	return owner.Equals(self) ||
		owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) ||
		owner.IsWellKnown(windows.WinLocalSystemSid) ||
		self.IsWellKnown(windows.WinLocalSystemSid), nil
}

func currentUser() (*windows.SID, error) {
	token, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	return token.User.Sid, nil
}
