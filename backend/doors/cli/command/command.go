// Package command is what all commands of the program bridge have in common: its home,
// its output as text or JSON, and the questions that they ask on a terminal.
package command

import (
	"bufio"
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

// OnlyOwner fails with Denied if an owner's command (bridge.OwnerCommands), given as words,
// was started inside a job. The broker also checks the process tree.
func (r Run) OnlyOwner(words string) error {
	if name := r.Getenv(sandbox.JobVariable); name != "" {
		return bridge.Errorf(bridge.Denied, "only the owner %s: this was asked for from within %s", bridge.OwnerDoes(words), name)
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
	input, ok := r.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(input.Fd())) {
		return bridge.Errorf(bridge.Denied, "nothing was changed: this is no terminal to ask on, so consent needs --yes")
	}
	asking := r.Stdout
	if *r.JSON {
		asking = r.Stderr // standard output is for the document only
	}
	fmt.Fprint(asking, question+" [y/N] ")
	answer, err := bufio.NewReader(r.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return bridge.Errorf(bridge.Denied, "nothing was changed")
	}
	return nil
}
