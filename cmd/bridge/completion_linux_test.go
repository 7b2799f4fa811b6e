package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// completingShell is a shell with the completions of bridge. Its bridge prints the words of
// a command line between angle brackets, except for the queries of the completion itself.
type completingShell struct {
	start []string // the program and its arguments; FILE is the file with the text below
	file  string   // the name of that file, where the shell prescribes one
	text  string
	needs string // a file that the completions need, or ""
}

const printsItsWords = `bridge() { case "$1" in __complete*) command bridge "$@" ;; *) echo "<$*>" ;; esac; }
`

var completingShells = map[string]completingShell{
	"bash": {
		start: []string{"bash", "--noprofile", "--rcfile", "FILE", "-i"}, file: "rc", needs: "/usr/share/bash-completion/bash_completion",
		text: ". /usr/share/bash-completion/bash_completion\n. <(command bridge completion bash)\n" + printsItsWords,
	},
	"zsh": {
		start: []string{"zsh", "-d", "-i"}, file: ".zshrc",
		text: "autoload -Uz compinit\ncompinit -u -D\n. <(command bridge completion zsh)\n" + printsItsWords,
	},
	"fish": {
		start: []string{"fish", "--no-config", "-i", "-C", "source FILE"}, file: "rc.fish",
		text: "command bridge completion fish | source\nfunction bridge\n  switch $argv[1]\n    case '__complete*'\n      command bridge $argv\n    case '*'\n      echo \"<$argv>\"\n  end\nend\n",
	},
}

// typed types a line into a shell on a terminal, then Enter, and returns what the terminal
// shows until the shell has ended.
func typed(shell, line string) (string, error) {
	s, known := completingShells[shell]
	if !known {
		return "", fmt.Errorf("no shell is called %q", shell)
	}
	folder, err := os.MkdirTemp("", "shell-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, s.file)
	if err := os.WriteFile(file, []byte(s.text), 0o600); err != nil {
		return "", err
	}
	args := []string{}
	for _, arg := range s.start {
		args = append(args, strings.ReplaceAll(arg, "FILE", file))
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "ZDOTDIR="+folder, "TERM=xterm", "HISTFILE=", "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		return "", err
	}
	defer terminal.Close()
	if _, err := io.WriteString(terminal, strings.ReplaceAll(line, `\t`, "\t")+"\rexit\r"); err != nil {
		return "", err
	}
	screen, _ := io.ReadAll(terminal) // its end is an error on Linux
	_ = cmd.Wait()                    // the shell's exit code is that of its last command
	return string(screen), nil
}

func printTyped(shell, line string) error {
	screen, err := typed(shell, line)
	fmt.Println(screen)
	return err
}

// Each shell completes commands, flags, settings, and the names that are there now.
func TestDOC_08_LiveNamesAreCompletedInEachShell(t *testing.T) {
	for shell, s := range completingShells {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%s IS NOT INSTALLED, so its completions are not seen here: apt-get install %[1]s", shell)
			}
			if _, err := os.Stat(s.needs); s.needs != "" && err != nil {
				t.Skipf("THE PACKAGE bash-completion IS NOT INSTALLED, so bash's completions are not seen here")
			}
			script := `exec bridge serve --port 0 &serving&
await 0 bridge status
exec session --agent codex --name planner --session h1 --cwd $WORK -- wait_for_message '{}' &reading&
await 0 sh -c 'bridge __complete send "" | grep -q "^planner$"'
exec bridge backup
`
			for _, row := range [][2]string{
				{`bridge stat\t`, "<status>"},
				{`bridge send pl\t`, "<send planner>"},
				{`bridge service ins\t`, "<service install>"},
				{`bridge config get jobs.maxJ\t`, "<config get jobs.maxJobs>"},
				{`bridge install code\t`, "<install codex>"},
				{`bridge restore lat\t`, "<restore latest>"},
				{`bridge help exit\t`, "<help exit-codes>"},
				{`bridge network o\tn\t`, "<network on>"},
				{`bridge status --js\t`, "<status --json>"},
			} {
				script += fmt.Sprintf("exec typed %s '%s'\nstdout '%s'\n", shell, row[0], row[1])
			}
			script += "exec bridge send planner done\nwait reading\nterm\nwait serving\n"
			file := filepath.Join(t.TempDir(), shell+".txtar")
			if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			testscript.Run(t, testscript.Params{Files: []string{file}, Setup: setUp, Cmds: map[string]func(*testscript.TestScript, bool, []string){"await": await, "term": term}})
		})
	}
}
