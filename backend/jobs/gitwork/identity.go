package gitwork

import (
	"context"
	"slices"
	"strings"
)

// Bridge's own name, for commits if git names no author.
const (
	ourName  = "Bridge"
	ourEmail = "bridge@localhost"
	ourIdent = ourName + " <" + ourEmail + ">"
)

// ours makes Bridge the author of a commit.
var ours = identityVariables(ourIdent, ourIdent)

// Variables that set the author of commits, in addition to those of every git. No other
// git receives the settings in them.
var (
	namingExact = []string{
		"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL",
		"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
	}
	namingBegins = []string{"GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"}
)

// namingVariables returns the variables that set the author of commits. Later ones win;
// a name without a value removes one.
func namingVariables(environ []string) []string {
	all := append(slices.Clone(namingExact), "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
	var found []string
	for _, pair := range environ {
		name, _, has := strings.Cut(pair, "=")
		begins := slices.ContainsFunc(namingBegins, func(begin string) bool { return strings.HasPrefix(name, begin) })
		if !begins && !slices.Contains(all, name) {
			continue
		}
		found = slices.DeleteFunc(found, func(other string) bool { return strings.HasPrefix(other, name+"=") })
		if has {
			found = append(found, pair)
		}
	}
	return found
}

// identity returns git's author and committer of a commit in the checkout at top, as
// `NAME <EMAIL>`. If none is set, or git fails, it returns Bridge.
func (g *program) identity(ctx context.Context, top string) (author, committer string) {
	if !g.isNamed(ctx, top) {
		return ourIdent, ourIdent
	}
	var found [2]string
	for i, variable := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		done, err := g.run(ctx, call{dir: top, env: g.naming, args: []string{"var", variable}, search: true})
		end := strings.LastIndex(done.out, ">") // the time follows
		if err != nil || end < 0 {
			return ourIdent, ourIdent
		}
		found[i] = done.out[:end+1]
	}
	return found[0], found[1]
}

// isNamed reports whether an author is set. Otherwise git would invent one from the
// name of this PC.
func (g *program) isNamed(ctx context.Context, top string) bool {
	isSet := func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		return value != "" && !strings.HasPrefix(name, "GIT_CONFIG_")
	}
	if slices.ContainsFunc(g.naming, isSet) {
		return true
	}
	_, err := g.run(ctx, call{dir: top, env: g.naming, args: []string{"config", "--get-regexp", `^(user|author|committer)\.(name|email)$`}, search: true})
	return err == nil
}

// identityVariables returns the variables that give a commit this author and committer.
func identityVariables(author, committer string) (env []string) {
	for prefix, ident := range map[string]string{"GIT_AUTHOR_": author, "GIT_COMMITTER_": committer} {
		name, email, _ := strings.Cut(strings.TrimSuffix(ident, ">"), " <")
		env = append(env, prefix+"NAME="+name, prefix+"EMAIL="+email)
	}
	return env
}

// owner returns the variables for commits of a job's work. It uses the recorded author
// of the owner's checkout before the job, or else asks git now.
func (g *program) owner(ctx context.Context, w Worktree) []string {
	for _, top := range []string{w.Path, w.Main} {
		if folders := g.places[top]; folders != nil && folders.isRecorded && folders.Author != "" && folders.Committer != "" {
			return identityVariables(folders.Author, folders.Committer)
		}
	}
	return identityVariables(g.identity(ctx, w.Main))
}
