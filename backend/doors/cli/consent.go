package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"bridge/backend/core/bridge"
)

// explain prints an explanation before a question, but not for scripts: they read one document.
func (a *App) explain(sentences string) {
	if !a.json {
		fmt.Fprintln(a.Stdout, sentences)
	}
}

// consent asks for consent to change settings or files.
func (a *App) consent(yes bool) error {
	return a.ask("Make these changes? A copy of every file is kept.", yes)
}

// ask asks on a terminal. Input that is not a terminal never consents automatically.
func (a *App) ask(question string, yes bool) error {
	if yes {
		return nil
	}
	input, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(input.Fd())) {
		return bridge.Errorf(bridge.Denied, "nothing was changed: this is no terminal to ask on, so consent needs --yes")
	}
	asking := a.Stdout
	if a.json {
		asking = a.Stderr // standard output is for the document only
	}
	fmt.Fprint(asking, question+" [y/N] ")
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return bridge.Errorf(bridge.Denied, "nothing was changed")
	}
	return nil
}
