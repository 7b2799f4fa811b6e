package gitwork

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bridge/backend/core/bridge"
	delegated "bridge/backend/core/job"
)

// settings are the settings of a repository that name programs.
type settings struct {
	filters []delegated.Filter
	off     []string // other keys of the repository's own settings that name programs
	lfs     string   // the repository's own key that makes git-lfs start a program; "" for none
}

// programKeys matches the names of settings that make one of Bridge's git calls start
// programs.
const programKeys = `^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver|diff\..*\.(command|textconv)|` +
	`remote\..*\.(promisor|vcs|uploadpack|receivepack)|credential\..*\.helper|lfs\.(extension|customtransfer)\..*|lfs\.standalonetransferagent)$`

// readSettings reads these settings with git.
func (g *program) readSettings(ctx context.Context, dir string) (settings, error) {
	done, err := g.run(ctx, call{dir: dir, args: []string{"config", "--show-scope", "-z", "--get-regexp", programKeys}})
	if err != nil && codeOf(err) != 1 { // 1: there are none
		return settings{}, err
	}
	var read settings
	parts := fields(done.out)
	for i := 0; i+1 < len(parts); i += 2 {
		key, value, hasValue := strings.Cut(parts[i+1], "\n")
		if !hasValue {
			value = "true" // a key without a value
		}
		read.note(key, value, parts[i] == "local" || parts[i] == "worktree")
	}
	if read.lfs == "" {
		read.lfs, err = g.lfsFile(ctx, dir)
		return read, err
	}
	return read, nil
}

// note adds a setting.
func (s *settings) note(key, value string, isLocal bool) {
	section, rest, _ := strings.Cut(key, ".")
	switch {
	case section == "filter":
		last := strings.LastIndexByte(rest, '.')
		s.noteFilter(rest[:last], rest[last+1:], value, isLocal)
	case isLocal && section == "lfs":
		s.lfs = key
	case isLocal:
		s.off = append(s.off, key)
	}
}

func (s *settings) noteFilter(name, key, value string, isLocal bool) {
	i := slices.IndexFunc(s.filters, func(f delegated.Filter) bool { return f.Name == name })
	if i < 0 {
		i = len(s.filters)
		s.filters = append(s.filters, delegated.Filter{Name: name})
	}
	filter := &s.filters[i]
	filter.Local = filter.Local || isLocal
	switch key {
	case "clean":
		filter.Clean = value
	case "smudge":
		filter.Smudge = value
	case "process":
		filter.Process = value
	case "required":
		filter.Required = !slices.Contains([]string{"", "false", "no", "off", "0"}, strings.ToLower(value))
	}
}

// lfsFile returns a key of .lfsconfig that makes git-lfs start a program, or "".
func (g *program) lfsFile(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, ".lfsconfig")
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return "", nil //nolint:nilerr // there is none that git-lfs would read
	}
	done, err := g.run(ctx, call{dir: dir, args: []string{"config", "--file", path, "-z", "--name-only", "--get-regexp", `^lfs\.((extension|customtransfer)\..*|standalonetransferagent)$`}})
	if err != nil {
		if codeOf(err) > 0 { // there is no key, or git-lfs cannot read it either
			return "", nil
		}
		return "", err
	}
	return fields(done.out)[0] + " in .lfsconfig", nil
}

// readOnly reports that a call only reads a checkout. Without a floor, no filter runs for
// such a call.
type readOnly bool

// tamed has the settings that override the repository's, and by name the reason why a
// filter is off.
type tamed struct {
	keys []string // name and value alternate
	off  map[string]string
}

// tame returns overrides that stop a repository's settings from starting programs. It
// keeps the filters from before the job began. It marks a disabled filter as required,
// so that git stores nothing without it.
func (g *program) tame(ctx context.Context, dir string, only readOnly) (tamed, error) {
	if g.untamed {
		return tamed{}, nil
	}
	folders := g.places[dir]
	var read settings
	if folders != nil && folders.settings != nil {
		read = *folders.settings
	} else {
		var err error
		if read, err = g.readSettings(ctx, dir); err != nil {
			return tamed{}, err
		}
		if folders != nil && len(g.sandbox) > 0 { // a later change is still below the floor
			folders.settings = &read
		}
	}
	out := tamed{off: map[string]string{}}
	for _, key := range read.off {
		value := ""
		switch {
		case strings.HasPrefix(key, "merge."):
			value = "false"
		case strings.HasSuffix(key, ".promisor"):
			value = "false"
		case strings.HasPrefix(key, "remote."):
			value = "false"
		case strings.HasSuffix(key, ".textconv"):
			value = "cat"
		}
		out.keys = append(out.keys, key, value)
	}
	for _, filter := range folders.filtersOr(read) {
		if why := g.whyOff(folders, read, filter, only); why != "" {
			out.off[filter.Name] = why
			base := "filter." + filter.Name + "."
			out.keys = append(out.keys, base+"clean", "", base+"smudge", "", base+"process", "", base+"required", "true")
			continue
		}
		out.keys = append(out.keys, keysOf(filter)...)
	}
	return out, nil
}

// filtersOr returns the recorded filters, then the current ones without a record.
func (p *gitFolders) filtersOr(read settings) []delegated.Filter {
	if p == nil || !p.isRecorded {
		return read.filters
	}
	all := slices.Clone(p.Filters)
	for _, filter := range read.filters {
		if !slices.ContainsFunc(all, func(f delegated.Filter) bool { return f.Name == filter.Name }) {
			all = append(all, filter)
		}
	}
	return all
}

// whyOff returns why a filter does not run, or "" if it runs.
func (g *program) whyOff(folders *gitFolders, read settings, filter delegated.Filter, only readOnly) string {
	hasRecord := folders != nil && folders.isRecorded && slices.Contains(folders.Filters, filter)
	hasProcess := slices.ContainsFunc(read.filters, func(f delegated.Filter) bool { return f.Name == filter.Name && f.Process != "" })
	isLFS := strings.Contains(filter.Clean+filter.Smudge+filter.Process, "lfs")
	switch {
	case read.lfs != "" && isLFS:
		return fmt.Sprintf("the repository's own settings have git-lfs start a program (%s)", read.lfs)
	case filter.Local && !hasRecord:
		return "the repository's own settings name it, and it was not there before the job began"
	case filter.Process == "" && hasProcess: // git uses this key first, and no setting can remove it
		return "a process was set up for it after the job began"
	case filter.Local && len(g.sandbox) == 0:
		return "the repository's own settings name it, and this system has no floor below which it could run"
	case bool(only) && len(g.sandbox) == 0:
		return "it does not run while Bridge only looks, for this system has no floor"
	}
	return ""
}

// keysOf returns the settings that make a filter mandatory. If the filter lacks a
// direction, files pass unchanged there, as in git.
func keysOf(filter delegated.Filter) []string {
	hasAny := filter.Clean != "" || filter.Smudge != "" || filter.Process != ""
	if hasAny && !filter.Required {
		const asItIs = "cat"
		if filter.Clean == "" && filter.Process == "" {
			filter.Clean = asItIs
		}
		if filter.Smudge == "" && filter.Process == "" {
			filter.Smudge = asItIs
		}
		filter.Required = true
	}
	base := "filter." + filter.Name + "."
	keys := []string{base + "clean", filter.Clean, base + "smudge", filter.Smudge, base + "required", strconv.FormatBool(filter.Required)}
	if filter.Process != "" { // an empty one would disable the other two
		keys = append(keys, base+"process", filter.Process)
	}
	return keys
}

// environment returns the settings as variables for git: on a command line, a name
// could end the argument.
func (t tamed) environment() []string {
	if len(t.keys) == 0 {
		return nil
	}
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(t.keys)/2)}
	for i := 0; i+1 < len(t.keys); i += 2 {
		n := strconv.Itoa(i / 2)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+t.keys[i], "GIT_CONFIG_VALUE_"+n+"="+t.keys[i+1])
	}
	return env
}

// tamed runs a git that reads or writes files, without the repository's own programs.
func (g *program) tamed(ctx context.Context, c call) (result, error) {
	return g.tamedFor(ctx, c, false)
}

func (g *program) tamedFor(ctx context.Context, c call, only readOnly) (result, error) {
	t, err := g.tame(ctx, c.dir, only)
	if err != nil {
		return result{}, err
	}
	c.env = append(t.environment(), c.env...)
	done, err := g.run(ctx, c)
	return done, t.inWords(c.dir, err)
}

var filterText = regexp.MustCompile(`fatal: (?s:(.*)): (?:clean|smudge) filter '?(.*?)'? failed`)

// inWords explains the error of a git that a filter stopped.
func (t tamed) inWords(dir string, err error) error {
	var failed *failure
	if !errors.As(err, &failed) {
		return err
	}
	found := filterText.FindStringSubmatch(failed.text)
	if found == nil {
		return err
	}
	why := t.off[found[2]]
	if why == "" {
		text := strings.ReplaceAll(strings.TrimSpace(failed.text), "\n", "; ")
		why = "it failed: " + text
	}
	lines := strings.Split(found[1], "\n")
	return bridge.Errorf(bridge.Denied, "%s in %s was not stored or written without its filter %q: %s", strings.TrimPrefix(lines[len(lines)-1], "fatal: "), dir, found[2], why)
}
