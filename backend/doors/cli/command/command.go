// Package command is what all commands of the program bridge have in common: its home,
// its output as text or JSON, and the questions that they ask on a terminal.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bridge/backend/core/bridge"
	"bridge/backend/doors/cli/terminal"
	"bridge/backend/platform/config"
	"bridge/backend/platform/sandbox"
)

// Run is one run of the program, as its commands see it.
type Run struct {
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Getenv   func(string) string
	Now      func() time.Time
	HomeFlag *string // the value of --home
	JSON     *bool   // whether --json is given
}

// Home returns the home for a command that may write there. It creates nothing.
func (r Run) Home() (config.Home, error) { return config.OpenHome(*r.HomeFlag, r.Getenv) }

// ReadHome returns the home for a command that only reads. It fails with Conflict if the
// folder holds other files.
func (r Run) ReadHome() (config.Home, error) {
	home, err := config.ResolveHome(*r.HomeFlag, r.Getenv)
	if err == nil {
		err = config.CheckContents(home)
	}
	return home, err
}

// OnlyOwner fails with Denied if an owner's command (bridge.OwnerCommands), given as action,
// was started inside a job. The broker also checks the process tree.
func (r Run) OnlyOwner(action string) error {
	if name := r.Getenv(sandbox.JobVariable); name != "" {
		return bridge.Errorf(bridge.Denied, "only the owner %s: this was asked for from within %s", bridge.OwnerDoes(action), name)
	}
	return nil
}

// JSONFlag adds --json to a command that prints data.
func (r Run) JSONFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(r.JSON, "json", false, "print one JSON document")
	return cmd
}

// Print writes value as JSON with --json, else as text.
func (r Run) Print(value any, text string) error {
	if *r.JSON {
		encoder := json.NewEncoder(terminal.JSON(r.Stdout))
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	_, err := fmt.Fprint(r.Stdout, text)
	return err
}

// Explain prints an explanation before a question, but not for scripts: they read one
// document.
func (r Run) Explain(sentences string) {
	if !*r.JSON {
		fmt.Fprintln(r.Stdout, sentences)
	}
}

// Consent asks for consent to change settings or files. It fails with Denied without.
func (r Run) Consent(yes bool) error {
	return r.Ask("Make these changes? A copy of every file is kept.", yes)
}

// Ask asks on a terminal. Input that is not a terminal never consents: that fails with
// Denied.
func (r Run) Ask(question string, yes bool) error {
	if yes {
		return nil
	}
	if !r.IsTerminal() {
		return bridge.Errorf(bridge.Denied, "nothing was changed: this is no terminal to ask on, so consent needs --yes")
	}
	answer, err := r.Line(question + " [y/N] ")
	if err != nil {
		return err
	}
	if !IsYes(answer) {
		return bridge.Errorf(bridge.Denied, "nothing was changed")
	}
	return nil
}

// IsTerminal reports whether a person can answer on the standard input.
func (r Run) IsTerminal() bool {
	input, ok := r.Stdin.(*os.File)
	return ok && term.IsTerminal(int(input.Fd()))
}

// Line asks a question and returns the answer without white space around it. It reads no
// further than the line, so that another question can follow.
func (r Run) Line(question string) (string, error) {
	asking := r.Stdout
	if *r.JSON {
		asking = r.Stderr // standard output is for the document only
	}
	fmt.Fprint(asking, question)
	var line []byte
	for char := make([]byte, 1); ; {
		n, err := r.Stdin.Read(char)
		if n > 0 && char[0] != '\n' {
			line = append(line, char[0])
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return "", fmt.Errorf("read the answer: %w", err)
		case err != nil || n > 0 && char[0] == '\n' || len(line) >= maxAnswerBytes:
			return strings.TrimSpace(string(line)), nil
		}
	}
}

// maxAnswerBytes limits one answer.
const maxAnswerBytes = 1024

// IsYes reports whether an answer agrees.
func IsYes(answer string) bool {
	lower := strings.ToLower(answer)
	return lower == "y" || lower == "yes"
}
