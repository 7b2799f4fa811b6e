package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/disk"
)

// Jobs holds the limits of delegated jobs in config.json. A job keeps the limits
// from the time of its creation.
type Jobs struct {
	// Enabled lets sessions delegate work to agents. It is on by default: a session's
	// CLI asks before each job (setup.AskedTools), and MaxAccess bounds the job.
	Enabled bool `json:"enabled"`
	// MaxJobs is how many jobs run at once, 1 to 50 (JOB-09).
	MaxJobs int `json:"maxJobs"`
	// MaxAccess is the highest access of a job: read, ask or edit.
	MaxAccess job.Access `json:"maxAccess"`
	// MaxDelegateDepth is the depth to which jobs may delegate, 1 to 3 (JOB-22).
	MaxDelegateDepth int `json:"maxDelegateDepth"`
	// Environment names further variables for the jobs of paired PCs, such as keys
	// and proxies. Every job gets the basic ones.
	Environment []string `json:"environment,omitempty"`
	// Env sets variables of this PC's jobs. null removes a variable from the
	// environment of the owner's terminal (JOB-28).
	Env map[string]*string `json:"env,omitempty"`
	// Sockets lists unix sockets of other programs to which this PC's edit jobs can
	// connect. An entry is an absolute path, a path below ~/, or $NAME for the path
	// in a variable of the job's environment (SEC-10).
	Sockets []string `json:"sockets,omitempty"`
	// Writable lists further folders in which this PC's edit jobs can write:
	// absolute paths, or paths below ~/ (RWM-22).
	Writable []string `json:"writable,omitempty"`
	// SetUp is the command, as a list of arguments, that prepares a new worktree (JOB-19).
	SetUp []string `json:"setUp,omitempty"`
	// AllowToolLevelOnly also starts jobs without a system sandbox. Only the
	// agent's CLI then limits them (JOB-14).
	AllowToolLevelOnly bool `json:"allowToolLevelOnly"`
	// MaxLogBytes bounds one run's log, and its transcript, in bytes each (SEC-11).
	MaxLogBytes int64 `json:"maxLogBytes"`
	// MaxProcesses bounds the processes and threads of one job, if the job has a
	// control group with that limit (SEC-08).
	MaxProcesses int `json:"maxProcesses"`
	// ResumeAtReset automatically continues a job that a usage limit ended, when
	// the limit resets (JOB-16).
	ResumeAtReset bool `json:"resumeAtReset"`

	problem error // the error of the jobs in config.json
}

// Problem returns the error of these settings in config.json, or nil. With an
// error, Bridge refuses jobs and otherwise works.
func (j Jobs) Problem() error { return j.problem }

// jobsProblem marks an error that concerns only the jobs.
type jobsProblem struct{ error }

// UnmarshalJSON decodes the valid members. It never fails: Problem returns the
// error of the others.
func (j *Jobs) UnmarshalJSON(raw []byte) error {
	type plain Jobs
	read := plain(*j)
	err := json.Unmarshal(raw, &read)
	*j = Jobs(read)
	switch problem, known := errors.AsType[disk.JSONProblem](disk.ExplainJSON(raw, err)); {
	case err == nil:
	case known && problem.Member == "":
		j.problem = errors.New(strings.Replace(problem.What, "it", "jobs", 1))
	case known:
		j.problem = errors.New("jobs." + problem.What)
	default:
		j.problem = fmt.Errorf("jobs.%w", err)
	}
	return nil
}

const (
	defaultLogBytes = 1 << 30
	leastLogBytes   = 1 << 20

	defaultProcesses = 4096
	leastProcesses   = 64 // an agent with one of its commands has dozens of threads
)

func defaultJobs() Jobs {
	return Jobs{Enabled: true, MaxJobs: job.DefaultMaxJobs, MaxAccess: job.AccessEdit, MaxDelegateDepth: job.DefaultDepth, MaxLogBytes: defaultLogBytes, MaxProcesses: defaultProcesses}
}

// Limits returns the limits that the rules of jobs enforce.
func (j Jobs) Limits() job.Limits {
	return job.Limits{MaxJobs: j.MaxJobs, MaxDepth: j.MaxDelegateDepth, MaxAccess: j.MaxAccess}
}

// Variables returns the entries of Env, sorted: NAME=value to set a variable, NAME to remove one.
func (j Jobs) Variables() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		if value := j.Env[name]; value != nil {
			name += "=" + *value
		}
		all = append(all, name)
	}
	return all
}

const (
	homePrefix     = "~/"
	variablePrefix = "$"
)

// isVariable reports whether the entry names a variable.
func isVariable(socket string) bool {
	name, is := strings.CutPrefix(socket, variablePrefix)
	return is && name != "" && !strings.ContainsAny(name, "=/$")
}

// SocketPaths returns the absolute paths of Sockets. userHome is the user's home
// folder, and getenv reads the job's environment. It omits unset variables.
func (j Jobs) SocketPaths(userHome string, getenv func(string) string) []string {
	var paths []string
	for _, socket := range j.Sockets {
		if below, is := strings.CutPrefix(socket, homePrefix); is {
			socket = filepath.Join(userHome, below)
		} else if isVariable(socket) {
			socket = getenv(strings.TrimPrefix(socket, variablePrefix))
		}
		if filepath.IsAbs(socket) {
			paths = append(paths, socket)
		}
	}
	return paths
}

// WritableFolders returns the absolute paths of Writable. userHome is the user's home folder.
func (j Jobs) WritableFolders(userHome string) []string {
	var folders []string
	for _, folder := range j.Writable {
		if below, is := strings.CutPrefix(folder, homePrefix); is {
			folder = filepath.Join(userHome, below)
		}
		folders = append(folders, filepath.Clean(folder))
	}
	return folders
}

// mostOfValue is the longest value of a variable in bytes: Linux allows 128 KiB with its name.
const mostOfValue = 64 << 10

// ownVariables is the name prefix of the variables that only Bridge sets for a job.
const ownVariables = "BRIDGE_"

// check returns a jobsProblem if a value is wrong.
func (j Jobs) check() error {
	err := j.problem
	if err == nil {
		if err = j.checkValues(); err != nil {
			err = fmt.Errorf("jobs.%w", err)
		}
	}
	if err != nil {
		return jobsProblem{err}
	}
	return nil
}

// checkValues returns an error that names the first value out of bounds.
func (j Jobs) checkValues() error {
	if j.MaxJobs < 1 || j.MaxJobs > job.HighestMaxJobs {
		return fmt.Errorf("maxJobs must be between 1 and %d, not %d", job.HighestMaxJobs, j.MaxJobs)
	}
	if _, err := job.ParseAccess(string(j.MaxAccess)); err != nil {
		return fmt.Errorf("maxAccess: %w", err)
	}
	if j.MaxDelegateDepth < 1 || j.MaxDelegateDepth > job.HighestDepth {
		return fmt.Errorf("maxDelegateDepth must be between 1 and %d, not %d", job.HighestDepth, j.MaxDelegateDepth)
	}
	if j.MaxLogBytes < leastLogBytes {
		return fmt.Errorf("maxLogBytes must be at least %d, not %d", leastLogBytes, j.MaxLogBytes)
	}
	if j.MaxProcesses < leastProcesses {
		return fmt.Errorf("maxProcesses must be at least %d, not %d", leastProcesses, j.MaxProcesses)
	}
	for _, name := range j.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("environment must hold names of variables without their values, not %q", name)
		}
		if strings.HasPrefix(strings.ToUpper(name), ownVariables) {
			return fmt.Errorf("environment must not hold %q: the variables of Bridge are not for jobs", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		switch value := j.Env[name]; {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("env must have names of variables, not %q", name)
		case strings.HasPrefix(strings.ToUpper(name), ownVariables):
			return fmt.Errorf("env must not have %q: the variables of Bridge are not for jobs", name)
		case value != nil && strings.Contains(*value, "\x00"):
			return fmt.Errorf("env.%s holds a zero byte, which no variable can", name)
		case value != nil && len(*value) > mostOfValue:
			return fmt.Errorf("env.%s has %s, and a variable may have %d", name, bridge.Counted(len(*value), "byte"), mostOfValue)
		}
	}
	for _, socket := range j.Sockets {
		if !filepath.IsAbs(socket) && !strings.HasPrefix(socket, homePrefix) && !isVariable(socket) {
			return fmt.Errorf("sockets must list absolute paths, paths below ~/, or $NAME, not %q", socket)
		}
	}
	for _, folder := range j.Writable {
		if !filepath.IsAbs(folder) && !strings.HasPrefix(folder, homePrefix) {
			return fmt.Errorf("writable must list absolute folders or folders below ~/, not %q", folder)
		}
	}
	if len(j.SetUp) > 0 && strings.TrimSpace(j.SetUp[0]) == "" {
		return fmt.Errorf("setUp must begin with a program, a word each")
	}
	return nil
}
