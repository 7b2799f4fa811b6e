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

// Fit adds to a job's spec what this PC and the owner's settings say of its agent:
// its command, what is passed on to it, and what it may write of its own. NotFound
// and Invalid, each in one sentence, for an agent that is not there. Where says where it is
// looked for; the configured program is that of the settings.
func Fit(spec job.Spec, settings config.Settings, where Lookup) (job.Spec, error) {
	if spec.Kind != job.ACP {
		where.Configured = settings.Bin(spec.Kind)
		program, err := Locate(spec.Kind, where)
		if err == nil && spec.Kind == bridge.Antigravity {
			err = checkAntigravity(program, where.environ())
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
	home, _ := os.UserHomeDir() // where there is none, a folder below it is not absolute and is refused
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

// antigravityJobs is the first version that takes what it is told as JSON lines.
const antigravityJobs = "1.1.15"

func checkAntigravity(program string, environ []string) error {
	switch version := inspect(context.Background(), bridge.Antigravity, program, environ).Version; {
	case version == "":
		return bridge.Errorf(bridge.Unsupported, "antigravity does not tell its version: jobs need %s or newer", antigravityJobs)
	case CompareVersions(version, antigravityJobs) < 0:
		return bridge.Errorf(bridge.Unsupported, "antigravity %s is too old for jobs: they need %s or newer", version, antigravityJobs)
	}
	return nil
}
