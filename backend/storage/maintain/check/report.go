// Package check is the doctor. It reports what is wrong with a home's storage, with a
// code, a severity and a hint for each finding. It changes nothing (rows STO). It also
// determines whether the home's store is lost and what restores it, verifies copies of
// databases, and records the home's growth.
package check

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/config"
	"bridge/backend/platform/disk"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// Report is the doctor's report (seed 2.7). Paths are relative to the home, with slashes;
// times are Unix milliseconds. No list is nil.
type Report struct {
	CheckedAt  bridge.UnixMillis `json:"checkedAt"`
	OK         bool              `json:"ok"` // no finding is an error
	Schema     []Schema          `json:"schema"`
	Findings   []Finding         `json:"findings"` // errors first
	Sizes      []Size            `json:"sizes"`    // every file and folder directly in the home
	TotalBytes int64             `json:"totalBytes"`
	Backups    []inventory.Set   `json:"backups"` // published sets, newest first
	// GonePrograms holds the agents whose settings start a program that no longer exists.
	GonePrograms []GoneProgram `json:"-"`
}

// GoneProgram is a missing program of Bridge, and an agent whose settings start it.
type GoneProgram struct {
	Kind    bridge.AgentKind
	Program string
}

// Schema is the version of one existing database.
type Schema struct {
	Path     string `json:"path"`
	Actual   int    `json:"actual"`
	Expected int    `json:"expected"`
}

// Finding is one problem.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Path     string   `json:"path"`
	Detail   string   `json:"detail"`
	Fixable  bool     `json:"fixable"`
}

// Size is the size of one file, or of everything in one folder.
type Size struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Count returns the number of findings with the severity.
func (r Report) Count(severity Severity) int {
	count := 0
	for _, finding := range r.Findings {
		if finding.Severity == severity {
			count++
		}
	}
	return count
}

// checker builds one report.
type checker struct {
	worker lease.Worker
	dir    string
	live   bool // a process may be writing
	quick  bool // only JSON files are read whole
	report Report
}

// Doctor inspects one home.
type Doctor struct {
	Worker lease.Worker
}

// Check inspects the whole home and changes nothing in it: it repairs, renames and
// migrates nothing, and leaves no side file (STO-01, STO-03). A missing home is a
// finding, and is not created. It fails if the home folder is unreadable or ctx ends.
func (d Doctor) Check(ctx context.Context) (Report, error) { return d.check(ctx, false) }

// QuickReport is Check without reading databases and backups whole: it covers the files
// of the home, versions, shapes and sizes, and of each table and index the first and the
// last row. Only Check finds damage elsewhere in a database or in a backup. It fails as
// Check does.
func (d Doctor) QuickReport(ctx context.Context) (Report, error) { return d.check(ctx, true) }

func (d Doctor) check(ctx context.Context, quick bool) (Report, error) {
	k := &checker{worker: d.Worker, dir: d.Worker.Home.Dir(), quick: quick, report: Report{
		CheckedAt: d.Worker.Now().UnixMilli(), Schema: []Schema{}, Findings: []Finding{}, Sizes: []Size{}, Backups: []inventory.Set{},
	}}
	if err := RequireHome(d.Worker.Home); err != nil {
		k.find(HomeMissing, ".", inventory.ShortErr(err))
		return k.report, nil
	}
	for _, check := range []func(context.Context) error{
		k.checkLeases, k.checkBackups, k.checkLoss, k.checkDatabases, k.checkEmptied, func(ctx context.Context) error { return checkCrossings(ctx, k) }, k.checkCompat, k.checkIndex, k.checkJSON, k.checkJobs, k.checkSecrets, func(context.Context) error { return checkPrograms(k) }, func(context.Context) error { return checkVariables(k.find) }, k.checkFiles,
	} {
		if err := check(ctx); err != nil {
			return Report{}, err
		}
	}
	slices.SortStableFunc(k.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Path, b.Path))
	})
	k.report.OK = k.report.Count(Error) == 0
	return k.report, nil
}

// RequireHome fails with NotFound or Storage if the home is no folder: there is nothing
// to work on, and a check must not create it.
func RequireHome(home config.Home) error {
	info, err := os.Stat(home.Dir())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bridge.Errorf(bridge.NotFound, "there is no home at %s: nothing was ever stored there, or --home or BRIDGE_HOME names another folder than before", home.Dir())
	case err != nil:
		return bridge.Errorf(bridge.Storage, "the home %s cannot be read: %s", home.Dir(), disk.Reason(err))
	case !info.IsDir():
		return bridge.Errorf(bridge.Storage, "the home %s is %s, not a folder", home.Dir(), inventory.KindOf(info.Mode()))
	}
	return nil
}

func (k *checker) find(code Code, path, detail string) {
	kind := Kinds()[code]
	k.report.Findings = append(k.report.Findings, Finding{
		Severity: kind.Severity, Code: code, Path: path, Detail: detail, Fixable: kind.Fixable,
	})
}

// found reports whether there is a finding about path.
func (k *checker) found(path string) bool {
	return slices.ContainsFunc(k.report.Findings, func(f Finding) bool { return f.Path == path })
}

// regular reports whether a regular file exists at path. Anything else there becomes a
// finding.
func (k *checker) regular(path string) (fs.FileInfo, bool) {
	info, err := os.Lstat(inventory.JoinHome(k.dir, path))
	switch {
	case inventory.IsGone(err):
		return nil, false
	case err != nil:
		k.find(FileUnreadable, path, disk.Reason(err))
	case info.Mode()&fs.ModeSymlink != 0:
		k.find(NotAFile, path, "it is a symbolic link")
	case !info.Mode().IsRegular():
		k.find(NotAFile, path, "it is "+inventory.KindOf(info.Mode())+", not a file")
	default:
		return info, true
	}
	return nil, false
}

// walk visits everything in the home; an unreadable folder is a finding.
func (k *checker) walk(ctx context.Context, visit func(path string, entry fs.DirEntry) error) error {
	return inventory.WalkOn(ctx, k.dir, visit, func(path string, err error) error {
		if !k.found(path) {
			k.find(FileUnreadable, path, disk.Reason(err))
		}
		return nil
	})
}

func (k *checker) checkLeases(context.Context) error {
	writers, err := lease.Writers(k.worker.Home)
	if err != nil {
		k.find(FileUnreadable, ".storage-users", disk.Reason(err))
		k.live = true
	}
	for _, writer := range writers {
		path := ".storage-users/" + filepath.Base(writer.Path)
		switch {
		case !writer.Readable:
			k.live = true
			k.find(LeaseUnreadable, path, "it does not say whose it is, so it counts as that of a live writer")
		case writer.Lives():
			k.live = true
		default:
			k.find(LeaseStale, path, "it is the lease of "+writer.String()+", which is gone")
		}
	}
	if lock, held := lease.ReadLock(k.worker.Home); held {
		if lock.PID > 0 && lock.Lives() {
			k.find(LockHeld, ".maintenance-lock", lock.What+" is at work: "+lease.Writer{Holder: lock, Readable: true}.String())
		} else {
			k.find(LockLeft, ".maintenance-lock", "maintenance was interrupted: its process is gone, and no broker starts until the file is")
		}
	}
	return nil
}

// secretBytes limits the file of a secret.
const secretBytes = 512

// checkSecrets checks the two secrets without revealing them.
func (k *checker) checkSecrets(context.Context) error {
	for _, path := range []string{"token", "launch-secret"} {
		if _, ok := k.regular(path); !ok {
			continue
		}
		data, err := disk.ReadLimited(inventory.JoinHome(k.dir, path), secretBytes)
		if err != nil && !errors.Is(err, disk.ErrTooLarge) {
			k.find(FileUnreadable, path, disk.Reason(err))
			continue
		}
		text := strings.TrimSpace(string(data))
		if err != nil || len(text) < 16 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			k.find(SecretDamaged, path, "it does not hold one line of a secret")
		}
	}
	return nil
}

// setSizes adds the total size of each file or folder of the home to the report.
func (r *Report) setSizes(bytes map[string]int64) {
	for _, path := range slices.Sorted(maps.Keys(bytes)) {
		r.Sizes = append(r.Sizes, Size{Path: path, Bytes: bytes[path]})
		r.TotalBytes += bytes[path]
	}
}
