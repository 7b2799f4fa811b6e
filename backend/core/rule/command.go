package rule

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// plainWords returns the words of a command that a prefix may match. A shell reads only
// words in such a command: no quotes, operators, expansions or second line. Its program
// executes no command from its arguments, uses no network and removes nothing. All
// other commands are allowed only exactly.
func (q Request) plainWords() ([]string, error) {
	if job.QuestionKind(q.Kind) != job.QuestionCommand {
		return nil, bridge.Errorf(bridge.Invalid, "this can be allowed exactly as it is only")
	}
	if isOtherShell(q.Tool) {
		return nil, bridge.Errorf(bridge.Invalid, "a command for %s can be allowed exactly as it is only", q.Tool)
	}
	if q.Cwd != "" && !within(q.Cwd, q.place()) {
		return nil, bridge.Errorf(bridge.Invalid, "it runs outside of the folder, so it can be allowed exactly as it is only")
	}
	if strings.ContainsFunc(q.Detail, func(r rune) bool { return !strings.ContainsRune(wordChars+" ", r) }) {
		return nil, bridge.Errorf(bridge.Invalid, "a shell may read more in it than its words, so it can be allowed exactly as it is only")
	}
	tokens := strings.Fields(q.Detail)
	if len(tokens) < MinWords {
		return nil, bridge.Errorf(bridge.Invalid, "the name of a program alone spells nothing out")
	}
	for _, token := range tokens {
		// This is an assignment, or a word that some shells replace by a path.
		if strings.HasPrefix(token, "=") || token == tokens[0] && strings.ContainsAny(token, "=:,@") {
			return nil, bridge.Errorf(bridge.Invalid, "a shell may read more in it than its words, so it can be allowed exactly as it is only")
		}
	}
	if slices.ContainsFunc(tokens[1:], q.leadsOut) {
		return nil, bridge.Errorf(bridge.Invalid, "it names a path that may lead out of the folder, so it can be allowed exactly as it is only")
	}
	if why := reaches(tokens); why != "" {
		return nil, bridge.Errorf(bridge.Invalid, "%s, so it can be allowed exactly as it is only", why)
	}
	return tokens, nil
}

// wordChars are the characters that every shell takes literally.
const wordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@+,-"

// isOtherShell reports whether the tool's name indicates a shell that is not POSIX, or
// one outside the sandbox.
func isOtherShell(tool string) bool {
	tool = strings.ToLower(tool)
	return strings.Contains(tool, "powershell") || strings.Contains(tool, "cmd") || strings.Contains(tool, "outside the sandbox")
}

// isPlainOperand reports whether a word may follow a prefix without being in the rule.
// It may be no option, which could make the program run or write something else. It
// also may be no assignment, no address, and no path out of the folder.
func (q Request) isPlainOperand(token string) bool {
	if strings.HasPrefix(token, "-") || strings.HasPrefix(token, "+") || strings.ContainsAny(token, "=@") {
		return false
	}
	return !q.leadsOut(token)
}

// leadsOut reports whether a word may name a path outside the folder.
func (q Request) leadsOut(token string) bool {
	for part := range strings.FieldsFuncSeq(token, func(r rune) bool { return strings.ContainsRune("=:,", r) }) {
		isGlued := strings.HasPrefix(part, "-") && strings.Contains(part, "/")
		if isGlued || slices.Contains(strings.Split(part, "/"), "..") || path.IsAbs(part) && !within(part, q.place()) {
			return true
		}
	}
	return false
}

// place returns the folder of the work.
func (q Request) place() string { return cmp.Or(q.Place, q.Folder) }

// Operands returns the words of a plain command after those of the rule; none if the
// rule is exact.
func (r Rule) Operands(request Request) []string {
	tokens, err := request.plainWords()
	if r.Match != Prefix || err != nil || len(tokens) < len(r.Words) {
		return nil
	}
	return tokens[len(r.Words):]
}

// within reports whether the path is the folder or below it, by its name.
func within(name, folder string) bool {
	if folder == "" || slices.Contains(strings.Split(name, "/"), "..") {
		return false
	}
	name, folder = path.Clean(name), path.Clean(folder)
	return name == folder || strings.HasPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}

// reaches returns why a command may do more than its words show, or "", judged by its
// program and tokens.
func reaches(tokens []string) string {
	program := programOf(tokens[0])
	switch {
	case slices.Contains(runners, program) || strings.HasPrefix(program, "python") || strings.HasPrefix(program, "pip"):
		return "it runs what it is given"
	case slices.Contains(networkers, program):
		return "it reaches the network"
	case slices.Contains(removers, program) || strings.HasPrefix(program, "mkfs"):
		return "it takes things away, or changes what lies outside of the folder"
	}
	for _, token := range tokens[1:] {
		if hidden, has := subcommands[program]; has && slices.Contains(hidden, strings.ToLower(token)) {
			return "it reaches the network, runs what it is given or takes things away"
		}
	}
	return ""
}

// programOf returns the name of a program without its folder and extension.
func programOf(token string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(token)), ".exe")
}

// The lists have common programs; they are not the guarantee. The guarantee is that the
// rule has the first words. The open ones are no option, outside path or shell syntax.
var (
	runners = []string{
		"sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh", "busybox", "env", "sudo", "doas", "su", "runuser", "pkexec", "xargs", "parallel",
		"nohup", "nice", "ionice", "chrt", "taskset", "setsid", "stdbuf", "unbuffer", "script", "time", "timeout", "watch", "entr", "eval", "exec", "command", "builtin",
		"source", ".", "trap", "alias", "function", "coproc", "if", "while", "for", "until", "case", "select", "find", "fd", "awk", "gawk", "mawk", "sed", "ed", "vi", "vim", "emacs",
		"perl", "ruby", "node", "nodejs", "deno", "bun", "bunx", "npx", "uv", "uvx", "php", "lua", "tclsh", "java", "osascript", "wine", "strace", "ltrace", "gdb", "lldb",
		"chroot", "unshare", "nsenter", "flock", "systemd-run", "at", "batch", "crontab", "tmux", "screen", "expect", "powershell", "pwsh", "cmd",
	}
	networkers = []string{
		"curl", "wget", "ssh", "scp", "sftp", "rsync", "ftp", "lftp", "telnet", "nc", "ncat", "netcat", "socat", "ping", "dig", "nslookup", "host", "aria2c", "http", "https",
		"gh", "glab", "hub", "aws", "gcloud", "az", "kubectl", "helm", "terraform", "docker", "podman", "apt", "apt-get", "dnf", "yum", "pacman", "apk", "brew", "snap", "flatpak",
		"gem", "bundle", "composer", "conda", "mamba", "mail", "sendmail", "openssl", "mount", "git-remote-https",
	}
	removers = []string{
		"rm", "rmdir", "unlink", "shred", "srm", "trash", "del", "erase", "rd", "truncate", "dd", "wipefs", "fdisk", "parted", "mv", "ln", "install", "tee", "tar", "unzip", "cpio",
		"chmod", "chown", "chgrp", "chattr", "setfacl", "kill", "pkill", "killall", "skill", "reboot", "shutdown", "halt", "poweroff", "systemctl", "service", "launchctl",
		"sysctl", "modprobe", "useradd", "userdel", "usermod", "passwd", "visudo", "iptables", "nft", "swapoff", "umount", "sqlite3", "psql", "mysql", "redis-cli", "mongosh",
	}
	subcommands = map[string][]string{
		"git": {
			"push", "pull", "fetch", "clone", "remote", "submodule", "ls-remote", "archive", "send-email", "svn", "lfs", "daemon", "bundle", "request-pull",
			"rm", "clean", "reset", "checkout", "switch", "restore", "stash", "rebase", "merge", "branch", "tag", "worktree", "gc", "prune", "reflog", "update-ref", "filter-branch", "filter-repo",
			"config", "bisect", "difftool", "mergetool", "hook", "alias", "credential", "init", "am", "apply", "cherry-pick", "revert", "mv", "maintenance", "notes", "replace",
		},
		"go":    {"run", "get", "install", "mod", "generate", "clean", "tool", "work", "env", "download"},
		"cargo": {"run", "install", "uninstall", "add", "remove", "update", "publish", "clean", "fetch", "login", "owner", "yank", "search", "xtask"},
		"npm":   {"install", "i", "ci", "add", "update", "upgrade", "uninstall", "remove", "rm", "un", "unlink", "link", "publish", "unpublish", "exec", "x", "init", "create", "login", "audit", "pack", "config", "set", "cache", "prune", "start-script"},
		"pnpm":  {"install", "i", "add", "update", "up", "remove", "rm", "dlx", "exec", "publish", "create", "link", "fetch", "import", "prune", "store", "config"},
		"yarn":  {"install", "add", "upgrade", "up", "remove", "dlx", "exec", "publish", "create", "link", "cache", "config", "set", "node"},
		"make":  {"clean", "distclean", "install", "uninstall", "deploy", "publish", "release", "push"},
	}
)
