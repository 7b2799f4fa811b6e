package run

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"bridge/backend/core/job"
)

// Caches is the folder of a job's own caches. Tools keep there what they can make or fetch
// again. It is none of the owner's: what a job wrote there would run in the owner's next
// build (SEC-05).
func Caches(spec job.Spec) string { return filepath.Join(Temporary(spec), cachesName) }

// cacheVariables name the folders of caches, and their names below Caches.
var cacheVariables = []struct{ variable, folder string }{
	{"GOCACHE", "go-build"},
	{"GOLANGCI_LINT_CACHE", "golangci-lint"},
	{"STATICCHECK_CACHE", "staticcheck"},
	{"npm_config_cache", "npm"},
	{"YARN_CACHE_FOLDER", "yarn"},
	{"YARN_GLOBAL_FOLDER", "yarn-global"},
	{"PNPM_HOME", "pnpm"},
	{"COREPACK_HOME", "corepack"},
	{"BUN_INSTALL_CACHE_DIR", "bun"},
	{"DENO_DIR", "deno"},
	{"PIP_CACHE_DIR", "pip"},
	{"UV_CACHE_DIR", "uv"},
	{"POETRY_CACHE_DIR", "poetry"},
	{"PIPENV_CACHE_DIR", "pipenv"},
	{"PRE_COMMIT_HOME", "pre-commit"},
	{"CCACHE_DIR", "ccache"},
	{"SCCACHE_DIR", "sccache"},
	{"GRADLE_USER_HOME", "gradle"},
	{"NUGET_PACKAGES", "nuget"},
	{"COMPOSER_CACHE_DIR", "composer"},
	{"XDG_CACHE_HOME", "xdg"},
}

// readOnlyCaches are entries of the owner's cache folder that hold what was fetched once and
// is only read: browsers and models.
var readOnlyCaches = []string{"ms-playwright", "Cypress", "puppeteer", "electron", "huggingface", "torch"}

// PrivateCaches makes a job's own caches, and returns the variables of its environment that
// lead there, none for a job that reads. What leads into the job's folders already stays.
// Sources that the owner has fetched are read where they are: those of Go and Cargo hold
// nothing else, and a build without a network needs them. It fails when a folder cannot be
// made.
func PrivateCaches(spec job.Spec, env Environ) ([]string, error) {
	if spec.Access == job.AccessRead {
		return nil, nil
	}
	own := maps.Clone(env)
	if err := privateCaches(spec, own); err != nil {
		return nil, fmt.Errorf("make the caches of job %s: %w", spec.Job, err)
	}
	maps.DeleteFunc(own, func(name, pair string) bool { return env[name] == pair })
	return own.list(), nil
}

// DropCaches removes a job's own caches and its shared memory when none of its processes
// runs any more. It never leaves the job's folder. It fails when something stays.
func DropCaches(stateFolder string) error {
	root, err := os.OpenRoot(stateFolder)
	if err != nil {
		return fmt.Errorf("remove the caches of a job: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	caches := filepath.Join(temporaryName, cachesName)
	if info, statErr := root.Lstat(caches); statErr == nil && info.IsDir() {
		// Some tools keep what they have fetched in folders that may not be written.
		err = fs.WalkDir(root.FS(), filepath.ToSlash(caches), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = root.Chmod(filepath.FromSlash(path), 0o700)
			}
			return err
		})
	}
	if err = errors.Join(err, root.RemoveAll(caches), root.RemoveAll(sharedName)); err != nil {
		return fmt.Errorf("remove the caches of a job: %w", err)
	}
	return nil
}

// privateCaches is PrivateCaches within an environment.
func privateCaches(spec job.Spec, env Environ) error {
	own := Caches(spec)
	ownersCache := env.cacheFolder()
	for _, cache := range cacheVariables {
		if isOwn(spec, env.Get(cache.variable)) {
			continue
		}
		folder := filepath.Join(own, cache.folder)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		env.set(cache.variable + "=" + folder)
	}
	privateSources(spec, env)
	if err := linkEntries(ownersCache, env.Get("XDG_CACHE_HOME"), append(withinCache(ownersCache, spec.ACP.Writable), readOnlyCaches...)); err != nil {
		return err
	}
	return privateMaven(spec, env)
}

// cacheFolder is the owner's folder of caches.
func (e Environ) cacheFolder() string {
	if folder := e.Get("XDG_CACHE_HOME"); filepath.IsAbs(folder) {
		return folder
	}
	return filepath.Join(UserHome(e), ".cache")
}

// isOwn reports whether a folder is one in which the job may write.
func isOwn(spec job.Spec, folder string) bool {
	if !filepath.IsAbs(folder) {
		return false
	}
	for _, writable := range append([]string{spec.Folder, Temporary(spec)}, spec.Writable...) {
		if below, err := filepath.Rel(writable, folder); err == nil && filepath.IsLocal(below) {
			return true
		}
	}
	return false
}

// privateSources gives the job folders for the modules of Go and the crates of Cargo where the
// owner has fetched none that the job may read.
func privateSources(spec job.Spec, env Environ) {
	own := Caches(spec)
	modules := goSetting(env, "GOMODCACHE")
	if modules == "" {
		path, _, _ := strings.Cut(goSetting(env, "GOPATH"), string(filepath.ListSeparator))
		if path == "" {
			path = filepath.Join(UserHome(env), "go")
		}
		modules = filepath.Join(path, "pkg", "mod")
	}
	if !isOwn(spec, modules) && (spec.Unlinked || !holdsAny(filepath.Join(modules, "cache", "download"))) {
		// Folders of modules that may not be written could not be removed with the job.
		flags := strings.TrimSpace(goSetting(env, "GOFLAGS") + " -modcacherw")
		env.set("GOMODCACHE="+filepath.Join(own, "go-mod"), "GOFLAGS="+flags)
	}
	crates := env.Get("CARGO_HOME")
	if crates == "" {
		crates = filepath.Join(UserHome(env), ".cargo")
	}
	if isOwn(spec, crates) || !spec.Unlinked && holdsAny(filepath.Join(crates, "registry")) {
		return
	}
	private := filepath.Join(own, "cargo")
	if linkEntries(crates, private, []string{"config", "config.toml", "credentials.toml", "bin"}) == nil {
		env.set("CARGO_HOME=" + private)
	}
}

// privateMaven gives the job a repository of its own, in front of the owner's, which is read.
func privateMaven(spec job.Spec, env Environ) error {
	arguments := env.Get("MAVEN_ARGS")
	own := filepath.Join(Caches(spec), "maven")
	if strings.Contains(arguments, "-Dmaven.repo.local=") || strings.ContainsAny(own, " \t") { // Maven splits them at blanks
		return nil
	}
	arguments += " -Dmaven.repo.local=" + own
	if owners := filepath.Join(UserHome(env), ".m2", "repository"); !spec.Unlinked && holdsAny(owners) && !strings.ContainsAny(owners, " \t") {
		arguments += " -Dmaven.repo.local.tail=" + owners
	}
	env.set("MAVEN_ARGS=" + strings.TrimSpace(arguments))
	return os.MkdirAll(own, 0o700)
}

// goSetting returns a setting of Go's: the variable, or what `go env -w` has written down.
func goSetting(env Environ, name string) string {
	if value := env.Get(name); value != "" {
		return value
	}
	path := env.Get("GOENV")
	if path == "" {
		config := env.Get("XDG_CONFIG_HOME")
		if config == "" {
			config = filepath.Join(UserHome(env), ".config")
		}
		path = filepath.Join(config, "go", "env")
	}
	file, err := os.Open(path)
	if err != nil {
		return "" // most have none
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, is := strings.CutPrefix(lines.Text(), name+"="); is {
			return value
		}
	}
	return ""
}

// holdsAny reports whether a folder has an entry.
func holdsAny(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && len(entries) > 0
}

// withinCache returns the names of the entries of a cache folder in which these folders are.
func withinCache(cache string, folders []string) []string {
	var names []string
	for _, folder := range folders {
		if below, err := filepath.Rel(cache, folder); err == nil && filepath.IsLocal(below) && below != "." {
			name, _, _ := strings.Cut(below, string(filepath.Separator))
			names = append(names, name)
		}
	}
	return names
}

// linkEntries makes links to these entries of a folder in another one, where they are there.
// What has the name already stays.
func linkEntries(from, to string, names []string) error {
	if from == to {
		return nil
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		target := filepath.Join(from, name)
		if _, err := os.Stat(target); err != nil {
			continue
		}
		if err := os.Symlink(target, filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("link %s: %w", target, err)
		}
	}
	return nil
}
