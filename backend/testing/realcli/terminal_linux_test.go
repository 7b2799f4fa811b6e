package realcli_test

import (
	"strings"
	"testing"
)

// A terminal shows what a program draws, and nothing of what it says beside.
func TestATerminalShowsWhatIsDrawn(t *testing.T) {
	w := newWorld(t, "p")
	for name, c := range map[string]struct{ writes, want string }{
		"a title with a letter that is no ASCII": {`\033]0;✳ Claude Code\007on the screen`, "on the screen\n"},
		"one that ends as the standard says":     {`\033]0;✳ Claude\033\\on the screen`, "on the screen\n"},
		"another way to ask for the same":        {`\033]11;?\007on the screen`, "on the screen\n"},
		"what is drawn over":                     {`first\r\033[Kthen ✳`, "then ✳\n"},
		"a cursor that moves":                    {`one\033[2;3Htwo`, "one\n  two\n"},
		"lines that scroll off":                  {strings.Repeat(`x\r\n`, 60) + "end", strings.Repeat("x\n", 60) + "end\n"},
		"the other screen":                       {`here\033[?1049hthere\033[?1049l`, "here\n"},
	} {
		// Without an echo, as programs that ask a terminal have it: the answer is no text to be shown.
		terminal, err := w.home.Open(soon(t), strings.ReplaceAll(name, " ", "-"), w.home.Dir, "/bin/sh", "-c", `stty -echo && exec /usr/bin/printf "$1"`, "sh", c.writes)
		must(t, err)
		must(t, terminal.Until(soon(t), c.want, func(screen string) bool { return screen == c.want }))
		must(t, terminal.Close(soon(t)))
	}
}
