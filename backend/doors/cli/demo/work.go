package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
)

// Command is the hidden command that runs the stand-in of the demo's jobs.
const Command = "demo-agent"

// The tasks of the demo's jobs.
const (
	cartTask  = "After a 409 the page must show what changed in the cart. Change src/cart.js; ask before you commit."
	guideTask = "Say in docs/errors.md what a 409 of the order endpoint means."
)

const cartBefore = `// The cart that the page shows.
export async function reload(cart) {
  const answer = await fetch('/cart');
  return answer.json();
}
`

const cartAfter = `// The cart that the page shows.
export async function reload(cart) {
  const answer = await fetch('/cart');
  const fresh = await answer.json();
  return { ...fresh, changed: changes(cart, fresh) };
}

/** The items whose number is another one, or that came or went. */
export function changes(before, after) {
  const count = (cart, id) => cart.items.find((item) => item.id === id)?.count ?? 0;
  const ids = new Set([...before.items, ...after.items].map((item) => item.id));
  return [...ids].filter((id) => count(before, id) !== count(after, id));
}
`

const guideBefore = "# Errors\n\nEvery endpoint answers errors as `{\"error\": \"<sentence>\"}`.\n"

const guideAfter = guideBefore + `
## 409 from the order endpoint

The cart changed since the page loaded it. Nothing was ordered. Reload the cart, show
the shopper what changed, and let him order again.
`

// tasks holds the stand-in's scripts by task.
var tasks = map[string][]act{
	cartTask: {
		tell("The page still shows the old cart after a 409. I look at how it is loaded."),
		read("src/cart.js"),
		progress(25, 3, "found where the cart is loaded"),
		edit("src/cart.js", cartAfter),
		git("diff", "--stat"),
		progress(70, 1, "the page knows what changed"),
		askGit("commit", "--quiet", "--all", "--message", "Tell what changed in the cart"),
		git("log", "--oneline", "-2"),
		tell("`reload` now tells which items changed since the page loaded the cart. The page has to show `changed`; that is not part of this."),
	},
	guideTask: {
		read("docs/errors.md"),
		edit("docs/errors.md", guideAfter),
		git("diff", "--stat"),
		tell("The guide has a section about the 409 now: what it means, and what the page does then."),
	},
}

// Prepare creates the demo's home, in which no other program starts a broker: the
// home ends with the demo.
func Prepare(home config.Home) error {
	if err := home.Ensure(); err != nil {
		return err
	}
	return disk.WriteAtomic(mark(home.Dir()), []byte("This is the home of a demo: it goes when the demo ends.\n"), 0o600)
}

// Keep turns the demo's home in that folder into an ordinary home.
func Keep(home string) error {
	err := os.Remove(mark(home))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it ended before it began
	}
	return err
}

func mark(home string) string { return filepath.Join(home, config.DemoMark) }

// PrepareJobs creates the demo's project, a git repository, and settings for its
// home that allow jobs, with the stand-in (this very program) as an agent. It
// returns false if this PC has no git: then there are no jobs.
func PrepareJobs(ctx context.Context, home config.Home, project string) (jobs bool, err error) {
	files := map[string]string{"src/cart.js": cartBefore, "docs/errors.md": guideBefore}
	for name, text := range files {
		path := filepath.Join(project, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return false, fmt.Errorf("make the demo's project: %w", err)
		}
		if err := disk.WriteAtomic(path, []byte(text), 0o600); err != nil {
			return false, err
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		return false, nil //nolint:nilerr // a demo without jobs
	}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "."}, {"commit", "--quiet", "--message", "The shop"}} {
		if output, err := gitIn(ctx, project, args...); err != nil {
			return false, fmt.Errorf("make the demo's project: git %s: %w: %s", args[0], err, output)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return false, fmt.Errorf("find this program: %w", err)
	}
	settings := map[string]any{
		"jobs":   map[string]any{"enabled": true},
		"agents": map[string]any{"acp": map[string]any{"script": map[string]any{"command": self, "args": []string{Command}}}},
	}
	return true, disk.WriteJSON(home.ConfigFile(), settings)
}

// work is the visible work besides the messages: a job to review, one with a
// question, and a session's question.
var work = []line{
	{who: "docs", tool: "spawn_acp", args: map[string]any{"agent": "script", "title": "Document the 409", "prompt": guideTask, "access": "ask", "worktree": true}},
	{who: "api", tool: "spawn_acp", args: map[string]any{"agent": "script", "title": "Show what changed in the cart", "prompt": cartTask, "access": "ask", "worktree": true}},
	{who: "web", tool: "ask_owner", args: map[string]any{
		"title": "What does the shopper see first after a 409?", "topic": "cart conflict",
		"context": "The cart changed meanwhile. Both ways work with what the order endpoint answers.",
		"options": []any{
			map[string]any{"label": "What changed", "consequence": "The shopper sees the difference and orders again."},
			map[string]any{"label": "The new total", "consequence": "One click orders the changed cart; who does not read on may be surprised."},
		},
	}},
}

// Work starts that work. Without jobs it only asks the question.
func (c Cast) Work(ctx context.Context, jobs bool) error {
	for _, line := range work {
		if line.tool == "spawn_acp" && !jobs {
			continue
		}
		if err := line.play(ctx, c, 0); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
