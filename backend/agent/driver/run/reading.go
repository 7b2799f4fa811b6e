package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"bridge/backend/core/job"
	"bridge/backend/core/remote"
	"bridge/backend/core/reserved"
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

// gitSettings are git's own files below the folder of settings. Its neighbours can hold
// passwords.
var gitSettings = []string{"config", "attributes", "ignore"}

// nodeParts are the folders of a node installation that programs read. The installation can
// be ~ or ~/.local, whose other folders hold the owner's files.
var nodeParts = []string{"bin", "lib", "libexec"}

// readable returns what a job of a paired PC reads besides what it may write: its folder,
// the system, the programs that it needs and state, what its agent keeps for itself
// (SEC-04). Bridge's home and everything else of the owner's are not among it.
func readable(spec job.Spec, env Environ, state []string) []string {
	return slices.Concat(systemPaths, state, []string{spec.Folder}, spec.Writable, Programs(spec, env))
}

// Programs returns the absolute paths of the folders and files that the programs of a job
// read of the owner's: the programs, the folders of the PATH, certificates and git's settings.
// It omits each folder that is or holds a private one: the owner's home, keys, the state
// of an agent, or Bridge's home (SEC-04).
func Programs(spec job.Spec, env Environ) []string {
	home := UserHome(env)
	settings := env.Get("XDG_CONFIG_HOME")
	if settings == "" {
		settings = filepath.Join(home, ".config")
	}
	paths := []string{filepath.Join(home, ".gitconfig")}
	for _, name := range gitSettings {
		paths = append(paths, filepath.Join(settings, "git", name))
	}
	for _, name := range certificateVariables {
		paths = append(paths, env.Get(name))
	}
	folders := filepath.SplitList(env.Get("PATH"))
	paths = append(paths, folders...)
	for _, program := range programsOf(spec) {
		paths = append(paths, partsOf(program)...)
	}
	if node := find("node", folders); node != "" {
		paths = append(paths, partsOf(node)...)
	}
	private := privateFolders(spec, env)
	paths = slices.DeleteFunc(paths, func(path string) bool { return !filepath.IsAbs(path) || holdsPrivate(path, private) })
	return withoutNested(paths)
}

// withoutNested returns the cleaned paths that lie in no other one, sorted: codex's sandbox
// fails at a program within a folder that it mounted before.
func withoutNested(paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, filepath.Clean(path))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(slices.Clone(all), func(path string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return other != path && remote.IsWithin(other, path) })
	})
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

// partsOf returns the paths from which a program reads its own parts: the program, the
// folder of its name, the folder of the file, and the packages of node that it belongs to.
func partsOf(program string) []string {
	if !filepath.IsAbs(program) {
		return nil
	}
	paths := []string{program, filepath.Dir(program)}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return paths
	}
	const packages = string(filepath.Separator) + "node_modules"
	if at := strings.Index(real, packages+string(filepath.Separator)); at > 0 {
		return append(paths, real[:at+len(packages)])
	}
	paths = append(paths, real, filepath.Dir(real))
	if filepath.Base(filepath.Dir(real)) == "bin" && filepath.Base(real) == "node" {
		for _, part := range nodeParts {
			paths = append(paths, filepath.Join(filepath.Dir(filepath.Dir(real)), part))
		}
	}
	return paths
}

// privateFolders returns the folders that no job of a paired PC reads whole, each with all
// links resolved.
func privateFolders(spec job.Spec, env Environ) []string {
	owner := reserved.Owner{
		System: runtime.GOOS, Home: UserHome(env), Getenv: env.Get, Join: filepath.Join, IsAbs: filepath.IsAbs,
	}
	private := append([]string{spec.StateFolder, os.TempDir()}, reserved.Temporary...)
	for _, folder := range owner.Folders() {
		if folder.IsPrivate() {
			private = append(private, folder.Path)
		}
	}
	for i, folder := range private {
		if real, err := filepath.EvalSymlinks(folder); err == nil { // a missing folder has no links
			private[i] = real
		}
	}
	return private
}

// holdsPrivate reports whether a path is one of the private folders or lies above one.
func holdsPrivate(path string, private []string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return slices.ContainsFunc(private, func(folder string) bool { return remote.IsWithin(path, folder) })
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
