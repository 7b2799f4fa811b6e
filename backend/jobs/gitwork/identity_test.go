package gitwork

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reopen has the owner's environment say more.
func (w *world) reopen(jobs []string, environ ...string) {
	w.t.Helper()
	w.env = append(w.env, environ...)
	g, err := Open(Options{Environ: w.env, Jobs: jobs, Home: filepath.Join(w.dir, "bridge"), Sandbox: w.g.sandbox})
	w.must(err)
	w.g = g
	for _, pair := range jobs { // for the owner's own git here
		if strings.Contains(pair, "=") {
			w.env = append(w.env, pair)
			continue
		}
		w.env = slices.DeleteFunc(w.env, func(other string) bool { return strings.HasPrefix(other, pair+"=") })
	}
}

// unnamed takes the owner's name out of the settings in his home.
func (w *world) unnamed() { w.write(w.dir, "home/.gitconfig", "[init]\ndefaultBranch = main\n") }

// Commits that Bridge makes of a job's work are by whom git itself names in the owner's
// checkout, whatever a job says in the settings meanwhile.
func TestRWM_08_CommitsAreByWhomGitNames(t *testing.T) {
	const other = "[user]\nname = Otto Other\nemail = otto@example.org\n"
	for name, c := range map[string]struct {
		lay  func(w *world)
		want string // the author
	}{
		"the settings in the home": {func(*world) {}, "Olga Owner <olga@example.com>"},
		"a setting of the repository": {func(w *world) {
			w.git(w.main, "config", "user.email", "work@example.com")
		}, "Olga Owner <work@example.com>"},
		"author.* and committer.*": {func(w *world) {
			w.git(w.main, "config", "author.name", "Anna Author")
			w.git(w.main, "config", "committer.email", "c@example.com")
		}, "Anna Author <olga@example.com>"},
		"GIT_CONFIG_GLOBAL": {func(w *world) {
			w.write(w.dir, "global", other)
			w.reopen(nil, "GIT_CONFIG_GLOBAL="+filepath.Join(w.dir, "global"))
		}, "Otto Other <otto@example.org>"},
		"GIT_CONFIG_COUNT": {func(w *world) {
			w.reopen(nil, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=Otto Other")
		}, "Otto Other <olga@example.com>"},
		"GIT_AUTHOR_* and GIT_COMMITTER_*": {func(w *world) {
			w.unnamed()
			w.reopen(nil, "GIT_AUTHOR_NAME=Anna Author", "GIT_AUTHOR_EMAIL=anna@example.org", "GIT_COMMITTER_NAME=Carl", "GIT_COMMITTER_EMAIL=carl@example.org")
		}, "Anna Author <anna@example.org>"},
		"EMAIL": {func(w *world) {
			w.write(w.dir, "home/.gitconfig", "[user]\nname = Olga Owner\n")
			w.reopen(nil, "EMAIL=mail@example.org")
		}, "Olga Owner <mail@example.org>"},
		"the environment of jobs": {func(w *world) {
			w.reopen([]string{"GIT_AUTHOR_EMAIL=jobs@example.org", "GIT_AUTHOR_NAME"}, "GIT_AUTHOR_NAME=Not Her")
		}, "Olga Owner <jobs@example.org>"},
		"includeIf gitdir": {func(w *world) {
			w.write(w.dir, "more", other)
			w.git(w.dir, "config", "--global", "includeIf.gitdir:"+w.main+"/.path", filepath.Join(w.dir, "more"))
		}, "Otto Other <otto@example.org>"},
		"includeIf onbranch": {func(w *world) {
			w.write(w.dir, "more", other)
			w.git(w.dir, "config", "--global", "includeIf.onbranch:main.path", filepath.Join(w.dir, "more"))
		}, "Otto Other <otto@example.org>"},
		"includeIf hasconfig": {func(w *world) {
			w.write(w.dir, "more", other)
			w.git(w.main, "remote", "add", "origin", "https://example.org/work/app")
			w.git(w.dir, "config", "--global", "includeIf.hasconfig:remote.*.url:https://example.org/work/**.path", filepath.Join(w.dir, "more"))
		}, "Otto Other <otto@example.org>"},
		"nobody": {func(w *world) { w.unnamed() }, ourIdent},
		"nobody, and git must not guess": {func(w *world) {
			w.write(w.dir, "home/.gitconfig", "[user]\nuseConfigOnly = true\n")
		}, ourIdent},
	} {
		for _, isRecorded := range []bool{true, false} {
			if !isRecorded && name != "EMAIL" && name != "nobody" { // of a job of before
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				c.lay(w)
				wantCommitter := ourIdent
				if c.want != ourIdent {
					var idents [2]string
					for i, variable := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
						ident := w.git(w.main, "var", variable)
						idents[i] = ident[:strings.LastIndex(ident, ">")+1]
					}
					if wantCommitter = idents[1]; idents[0] != c.want {
						t.Fatalf("git itself names %q", idents[0])
					}
				}
				tree := w.add(w.main)
				g := w.g
				if isRecorded {
					g = g.Pin(w.own(tree))
					w.git(w.main, "config", "user.name", "A Job")
					w.git(w.main, "config", "author.email", "job@example.org")
				}
				w.write(tree.Path, "new.txt", "work\n")
				finished, err := g.Finish(w.ctx(), tree, job, Squash, "", false)
				if err != nil || !finished.Done {
					t.Fatalf("Finish = %+v, %v", finished, err)
				}
				for what, commit := range map[string]string{"landed": "HEAD", "parked": tree.Branch} {
					if got := w.git(w.main, "log", "-1", "--format=%an <%ae>|%cn <%ce>", commit); got != c.want+"|"+wantCommitter {
						t.Errorf("what was %s is by %s, want %s|%s", what, got, c.want, wantCommitter)
					}
				}
			})
		}
	}
}
