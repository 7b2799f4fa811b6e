package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/platform/config"
)

// Fit adds this PC's and the settings' values for the job's agent to a job's spec:
// its command, its variables, and its writable folders. It fails with NotFound or
// Invalid, in one sentence, for a missing agent. where controls the search; the
// configured program is that of the settings.
func Fit(spec job.Spec, settings config.Settings, where Lookup) (job.Spec, error) {
	if spec.Kind != job.ACP {
		where.Configured = settings.Bin(spec.Kind)
		program, err := Locate(spec.Kind, where)
		if since := bridge.TraitsOf(spec.Kind).Jobs.Since; err == nil && since != "" {
			err = checkVersion(spec.Kind, since, program, where.environ())
		}
		if bridge.CodeOf(err) == bridge.NotFound {
			err = bridge.Errorf(bridge.NotFound, "%w; it was looked for in %s", err, where.variable("PATH"))
		}
		spec.Command = argv(program)
		return spec, err
	}
	name := spec.ACP.Name
	own, known := settings.ACP[name]
	if !known {
		return spec, bridge.Errorf(bridge.NotFound, "there is no agent %q in agents.acp of the configuration", name)
	}
	program, found := own.Command, filepath.IsAbs(own.Command) && isProgram(own.Command)
	if !filepath.IsAbs(own.Command) {
		program, found = where.onPath(own.Command)
	}
	if !found {
		return spec, bridge.Errorf(bridge.NotFound, "%s is not on this PC: agents.acp.%s names %s, which is no program", name, name, own.Command)
	}
	spec.Command = argv(program, own.Args...)
	for _, variable := range own.Env {
		if value := where.variable(variable); value != "" {
			spec.Env = append(spec.Env, variable+"="+value)
		}
	}
	home, _ := os.UserHomeDir() // without it, a folder below it is not absolute and is refused
	for _, folder := range own.Writable {
		if below, inHome := strings.CutPrefix(folder, "~/"); inHome {
			folder = filepath.Join(home, below)
		}
		spec.ACP.Writable = append(spec.ACP.Writable, folder)
	}
	spec.ACP.Modes = map[job.Access]string{}
	for access, mode := range own.Modes {
		spec.ACP.Modes[job.Access(access)] = mode
	}
	return spec, nil
}

// checkVersion fails with Unsupported if the CLI is older than since, the first version
// that can do jobs, or does not report its version.
func checkVersion(kind bridge.AgentKind, since, program string, environ []string) error {
	switch version := inspect(context.Background(), kind, program, environ).Version; {
	case version == "":
		return bridge.Errorf(bridge.Unsupported, "%s does not tell its version: jobs need %s or newer", kind, since)
	case CompareVersions(version, since) < 0:
		return bridge.Errorf(bridge.Unsupported, "%s %s is too old for jobs: they need %s or newer", kind, version, since)
	}
	return nil
}
