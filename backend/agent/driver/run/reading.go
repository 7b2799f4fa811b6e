package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/job"
)

// systemPaths are the paths that programs of any kind read on a Unix system: programs,
// libraries, settings of the machine, and files of the kernel. None holds data of a user.
var systemPaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap", "/proc", "/sys",
	"/dev/tty", "/dev/ptmx", "/dev/pts", "/var/lib/ca-certificates", "/var/lib/snapd", "/home/linuxbrew/.linuxbrew",
	"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/run/current-system",
}

// certificateVariables name files and folders of certificates.
var certificateVariables = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"}

// readable returns what a job of a paired PC reads besides what it may write: its folder,
// the system, the programs that it needs and state, what its agent keeps for itself
// (SEC-04). Bridge's home and everything else of the owner's are not among it.
func readable(spec job.Spec, env Environ, state []string) []string {
	return slices.Concat(systemPaths, state, []string{spec.Folder}, spec.Writable, Programs(spec, env))
}

// Programs returns the folders and files that the programs of a job need of the owner's:
// the programs themselves, those on the PATH, certificates, and git's settings.
func Programs(spec job.Spec, env Environ) []string {
	home := UserHome(env)
	paths := []string{filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git")} // whose name stands in its commits
	for _, name := range certificateVariables {
		paths = append(paths, env.Get(name))
	}
	folders := filepath.SplitList(env.Get("PATH"))
	paths = append(paths, folders...)
	for _, program := range programsOf(spec) {
		paths = append(paths, homeOf(program)...)
	}
	if node := find("node", folders); node != "" {
		paths = append(paths, homeOf(node)...)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return !filepath.IsAbs(path) })
}

// programsOf returns the programs that a job starts of itself.
func programsOf(spec job.Spec) []string {
	programs := []string{spec.Bridge.Command}
	for _, line := range [][]string{spec.Command, spec.Sandbox} {
		if len(line) > 0 {
			programs = append(programs, line[0])
		}
	}
	return programs
}

// homeOf returns the folders from which a program reads its own parts: where it is named,
// where it lies, and the packages of node that it belongs to.
func homeOf(program string) []string {
	if !filepath.IsAbs(program) {
		return nil
	}
	folders := []string{filepath.Dir(program)}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return folders
	}
	const packages = string(filepath.Separator) + "node_modules"
	if at := strings.Index(real, packages+string(filepath.Separator)); at > 0 {
		return append(folders, real[:at+len(packages)])
	}
	folders = append(folders, filepath.Dir(real))
	if filepath.Base(filepath.Dir(real)) == "bin" && filepath.Base(real) == "node" {
		folders = append(folders, filepath.Dir(filepath.Dir(real)))
	}
	return folders
}

// find returns the program of that name in the first of these folders that has it.
func find(name string, folders []string) string {
	for _, folder := range folders {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// Entries returns the paths of a folder's entries but for the names that are left out.
func Entries(folder string, without ...string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // nothing is read there
	}
	var paths []string
	for _, entry := range entries {
		if !slices.Contains(without, entry.Name()) {
			paths = append(paths, filepath.Join(folder, entry.Name()))
		}
	}
	return paths
}
