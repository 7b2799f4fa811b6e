package shellenv

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"bridge/backend/core/reserved"
)

// session lists the variables that a login or desktop session gives to every
// terminal. A final star marks a name prefix.
var session = []string{
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM",
	"XDG_RUNTIME_DIR", "XDG_SESSION_*", "XDG_SEAT", "XDG_SEAT_PATH", "XDG_VTNR", "XDG_CURRENT_DESKTOP", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS", "DESKTOP_SESSION",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "KRB5CCNAME",
	"WSL_DISTRO_NAME", "WSL_INTEROP", "WSLENV", "__CF_USER_TEXT_ENCODING", "SECURITYSESSIONID",
}

// sessionWindows lists the variables of a Windows session.
var sessionWindows = []string{
	"ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAM*", "COMPUTERNAME", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "LOGONSERVER", "NUMBER_OF_PROCESSORS",
	"OS", "PATHEXT", "PROCESSOR_*", "PROGRAMDATA", "PROGRAMFILES*", "PROGRAMW6432", "PUBLIC", "SESSIONNAME", "SYSTEMDRIVE", "SYSTEMROOT", "USERDOMAIN*",
	"USERNAME", "USERPROFILE", "WINDIR", "TEMP", "TMP",
}

// broker lists the variables that a broker reads in addition to those of the session:
// Bridge's own, the agents' folders, certificates, and those of the Go runtime.
var broker = []string{
	"BRIDGE_*", "XDG_*", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GORACE", "GOTRACEBACK", "GOCOVERDIR",
}

// notBroker lists the session variables that a broker does not inherit.
var notBroker = []string{"BRIDGE_NAME", Asking}

// Clean returns the environment in which a login shell starts, as login(1) and a
// terminal create it, derived from any process's environment (RWM-06). It holds the
// session variables, the user's name, and a system PATH. In a container it starts
// with the environment of process 1, which each new terminal of the container gets.
// It omits all other variables of the process.
//
// The PATH holds the folders of the container, then the system's. Last come the
// root-owned folders of the process's PATH that are not in a project, a home
// folder, or a folder for temporary files.
func Clean(environ []string) []string {
	return clean(environ, container())
}

// clean is [Clean] with the environment of the container, or nil outside of one.
func clean(environ, container []string) []string {
	var variables list
	var ofContainer []string
	for _, pair := range container {
		if name, value, _ := strings.Cut(pair, "="); name == pathName {
			ofContainer = filepath.SplitList(value)
		} else if name != "" {
			variables.set(pair)
		}
	}
	names := session
	if runtime.GOOS == "windows" {
		names = slices.Concat(names, sessionWindows)
	}
	for _, pair := range environ {
		if fits(names, pair) {
			variables.set(pair)
		}
	}
	if current, err := user.Current(); err == nil && runtime.GOOS != "windows" {
		variables.add("HOME", current.HomeDir)
		variables.add("USER", current.Username)
		variables.add("LOGNAME", current.Username)
	}
	folders := slices.Concat(ofContainer, systemPath(), ofTheMachine(environ, variables.get("HOME")))
	variables.set(path + strings.Join(unique(folders), string(filepath.ListSeparator)))
	return variables
}

// Broker returns the part of its starter's environment that a detached broker keeps
// (RWM-06). It is the result of Clean outside of a container, plus the variables
// that a broker reads. It omits TMPDIR and its like.
func Broker(environ []string) []string {
	cleaned := list(clean(environ, nil))
	for _, pair := range environ {
		if fits(broker, pair) && !fits(notBroker, pair) {
			cleaned.set(pair)
		}
	}
	return cleaned
}

// temporary lists the shared folders for temporary files.
var temporary = reserved.Temporary

// ofTheMachine returns the PATH folders of an environment that belong to the machine.
func ofTheMachine(environ []string, home string) []string {
	var folders []string
	variables := list(environ)
	elsewhere := append([]string{home, os.TempDir(), variables.get("TMPDIR"), variables.get("VIRTUAL_ENV"), variables.get("CONDA_PREFIX")}, temporary...)
	for _, folder := range filepath.SplitList(variables.get(pathName)) {
		real, err := filepath.EvalSymlinks(folder)
		if err != nil || !filepath.IsAbs(folder) || !isOfRoot(real) || isOfProject(real) {
			continue
		}
		isElsewhere := func(top string) bool { return filepath.IsAbs(top) && (isBelow(folder, top) || isBelow(real, top)) }
		if !slices.ContainsFunc(elsewhere, isElsewhere) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// isOfProject reports whether a folder is in a checkout, a Python virtual
// environment, or the packages of a node project.
func isOfProject(folder string) bool {
	if strings.Contains(filepath.ToSlash(folder)+"/", "/node_modules/") {
		return true
	}
	for ; ; folder = filepath.Dir(folder) {
		for _, mark := range []string{".git", "pyvenv.cfg"} {
			if _, err := os.Lstat(filepath.Join(folder, mark)); err == nil {
				return true
			}
		}
		if folder == filepath.Dir(folder) {
			return false
		}
	}
}

func isBelow(path, top string) bool {
	rest, err := filepath.Rel(top, path)
	return err == nil && top != filepath.Dir(top) && (rest == "." || filepath.IsLocal(rest))
}

// fits reports whether a pattern matches the variable name of a pair.
func fits(patterns []string, pair string) bool {
	name, _, isPair := strings.Cut(pair, "=")
	if runtime.GOOS == "windows" {
		name = strings.ToUpper(name)
	}
	return isPair && slices.ContainsFunc(patterns, func(pattern string) bool {
		begin, isPrefix := strings.CutSuffix(pattern, "*")
		return name == pattern || isPrefix && strings.HasPrefix(name, begin)
	})
}

func unique(folders []string) []string {
	var distinct []string
	for _, folder := range folders {
		if folder != "" && !slices.Contains(distinct, folder) {
			distinct = append(distinct, folder)
		}
	}
	return distinct
}

// list is an environment as NAME=value.
type list []string

func (l *list) index(name string) int {
	return slices.IndexFunc(*l, func(pair string) bool {
		own, _, _ := strings.Cut(pair, "=")
		return own == name || runtime.GOOS == "windows" && strings.EqualFold(own, name)
	})
}

// get returns a variable's value, or "" if it is unset.
func (l *list) get(name string) string {
	at := l.index(name)
	if at < 0 {
		return ""
	}
	_, value, _ := strings.Cut((*l)[at], "=")
	return value
}

func (l *list) set(pair string) {
	name, _, _ := strings.Cut(pair, "=")
	if at := l.index(name); at >= 0 {
		(*l)[at] = pair
		return
	}
	*l = append(*l, pair)
}

// add sets a variable that is unset or empty.
func (l *list) add(name, value string) {
	if l.get(name) == "" && value != "" {
		l.set(name + "=" + value)
	}
}
