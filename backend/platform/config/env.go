package config

import (
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/core/bridge"
)

// The defaults of the variables (seed 8; MSG-12 fixes the first two).
const (
	defaultMessageTTL      = 7 * 24 * time.Hour
	defaultQueuedMailAge   = 24 * time.Hour
	defaultBackupInterval  = 24 * time.Hour
	defaultArchiveAge      = 30 * 24 * time.Hour
	defaultBackupRetention = 7
	mostBackupHours        = 366 * 24
)

// environmentVariable is one variable that Bridge reads.
type environmentVariable struct {
	name string
	// usable reports whether Bridge can use a value; nil accepts any. want names the usable
	// values for people.
	usable func(value string) bool
	want   string
}

// environmentVariables are the variables that Bridge reads, without those of the agents'
// programs.
var environmentVariables = []environmentVariable{
	{"BRIDGE_ARCHIVE_AGE_MS", isMillis, millisWanted},
	{"BRIDGE_ASKS_THE_SHELL", nil, ""},
	{"BRIDGE_AUTO_BACKUP", isNumber(1), "0 or 1"},
	{"BRIDGE_BACKUP_INTERVAL_MS", isMillis, millisWanted},
	{"BRIDGE_BACKUP_RETENTION", isNumber(math.MaxInt32), "a number of backups"},
	{"BRIDGE_HOME", nil, ""},
	{"BRIDGE_HUB_HOME", nil, ""},
	{"BRIDGE_ISOLATED", nil, ""},
	{"BRIDGE_JOB", nil, ""},
	{"BRIDGE_JOB_TOKEN", nil, ""},
	{"BRIDGE_KEPT_BELOW_TMP", nil, ""},
	{"BRIDGE_LOG_LEVEL", func(value string) bool { return new(slog.Level).UnmarshalText([]byte(value)) == nil }, "debug, info, warn or error"},
	{"BRIDGE_MESSAGE_TTL_MS", isMillis, millisWanted},
	{"BRIDGE_NAME", nil, ""},
	{"BRIDGE_PORT", isNumber(65535), "a number from 0 to 65535"},
	{"BRIDGE_PROVE", func(value string) bool { return ProveMode(value).check() == nil }, "auto or off"},
	{"BRIDGE_QUEUED_MAIL_MAX_AGE_MS", isMillis, millisWanted},
}

const millisWanted = "a number of milliseconds"

func isMillis(value string) bool { return millis(value, -1) >= 0 }

// isNumber returns a function that accepts the numbers from 0 to most.
func isNumber(most int) func(value string) bool {
	return func(value string) bool { return number(value, most, -1) >= 0 }
}

// Variables returns the names of the variables that Bridge reads, sorted.
func Variables() []string {
	var all []string
	for _, variable := range environmentVariables {
		all = append(all, variable.name)
	}
	for _, kind := range bridge.Kinds() {
		all = append(all, binVariable(kind))
	}
	slices.Sort(all)
	return all
}

func binVariable(kind bridge.AgentKind) string {
	return ownVariables + strings.ToUpper(string(kind)) + "_BIN"
}

// MisspeltVariables returns one sentence for each variable of the environment whose name
// is much like one that Bridge reads, but is none. environ holds NAME=value.
func MisspeltVariables(environ []string) (sentences []string) {
	known := Variables()
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(strings.ToUpper(name), ownVariables) || slices.Contains(known, name) {
			continue
		}
		if question := bridge.DidYouMean(name, known); question != "" {
			sentences = append(sentences, name+" is no variable of Bridge. "+question)
		}
	}
	slices.Sort(sentences)
	return sentences
}

// InvalidVariables returns one sentence for each variable of the environment whose value
// Bridge cannot use: it counts as not set. environ holds NAME=value.
func InvalidVariables(environ []string) (sentences []string) {
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		for _, known := range environmentVariables {
			if known.name == name && value != "" && known.usable != nil && !known.usable(value) {
				sentences = append(sentences, name+" is "+strconv.Quote(value)+": it must be "+known.want)
			}
		}
	}
	slices.Sort(sentences)
	return sentences
}

// Settings is the settings in force: config.json, overridden by the BRIDGE_*
// variables. Zero durations and a zero BackupRetention have seed 8's meaning: no
// expiry, no interval, keep all. An invalid variable counts as unset. BRIDGE_NAME
// is not part of it, because it names one session.
type Settings struct {
	Config

	MessageTTL       time.Duration // BRIDGE_MESSAGE_TTL_MS: age at which unread mail expires
	QueuedMailMaxAge time.Duration // BRIDGE_QUEUED_MAIL_MAX_AGE_MS: age at which mail for unknown names expires
	AutoBackup       bool          // BRIDGE_AUTO_BACKUP: 1 for automatic message backups, 0 for none
	BackupInterval   time.Duration // BRIDGE_BACKUP_INTERVAL_MS
	BackupRetention  int           // BRIDGE_BACKUP_RETENTION: number of recent sets kept
	ArchiveAge       time.Duration // BRIDGE_ARCHIVE_AGE_MS
	LogLevel         slog.Level    // BRIDGE_LOG_LEVEL: debug, info, warn or error
}

// Settings reads config.json and applies the variables. It fails as Config does,
// but if only jobs are wrong, it succeeds: Jobs.Problem then returns the error.
func (h Home) Settings(getenv func(string) string) (Settings, error) {
	config, err := h.Config()
	if _, only := errors.AsType[jobsProblem](err); only {
		config.Jobs, err = Jobs{problem: err}, nil
	}
	if err != nil {
		return Settings{}, err
	}
	return apply(config, getenv), nil
}

// Bin returns the configured program of kind, or "" for the program on PATH.
func (s Settings) Bin(kind bridge.AgentKind) string { return s.Agents[kind].Bin }

// ACPNames returns the names of the agents of agents.acp, sorted.
func (s Settings) ACPNames() []string { return slices.Sorted(maps.Keys(s.ACP)) }

func apply(config Config, getenv func(string) string) Settings {
	config.Port = number(getenv("BRIDGE_PORT"), 65535, config.Port)
	if mode := ProveMode(getenv("BRIDGE_PROVE")); mode.check() == nil {
		config.Prove = mode
	}
	agents := map[bridge.AgentKind]Agent{}
	for kind, agent := range config.Agents {
		agents[kind] = agent
	}
	for _, kind := range bridge.Kinds() {
		if bin := getenv(binVariable(kind)); bin != "" {
			agents[kind] = Agent{Bin: bin}
		}
	}
	config.Agents = agents
	return Settings{
		Config:           config,
		MessageTTL:       millis(getenv("BRIDGE_MESSAGE_TTL_MS"), defaultMessageTTL),
		QueuedMailMaxAge: millis(getenv("BRIDGE_QUEUED_MAIL_MAX_AGE_MS"), defaultQueuedMailAge),
		AutoBackup:       number(getenv("BRIDGE_AUTO_BACKUP"), 1, asNumber(config.Backups.Auto)) == 1,
		BackupInterval:   millis(getenv("BRIDGE_BACKUP_INTERVAL_MS"), time.Duration(config.Backups.EveryHours)*time.Hour),
		BackupRetention:  number(getenv("BRIDGE_BACKUP_RETENTION"), math.MaxInt32, config.Backups.Keep),
		ArchiveAge:       millis(getenv("BRIDGE_ARCHIVE_AGE_MS"), defaultArchiveAge),
		LogLevel:         level(getenv("BRIDGE_LOG_LEVEL")),
	}
}

// asNumber returns 1 for true, as a variable has it.
func asNumber(on bool) int {
	if on {
		return 1
	}
	return 0
}

// number parses a nonnegative integer of at most highest, or returns fallback.
func number(text string, highest, fallback int) int {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n > uint64(highest) {
		return fallback
	}
	return int(n)
}

// millis parses nonnegative milliseconds, or returns fallback. It caps the value at
// the longest Duration, 292 years.
func millis(text string, fallback time.Duration) time.Duration {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return fallback
	}
	if n > uint64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}

func level(text string) slog.Level {
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(text)); err != nil {
		return slog.LevelInfo
	}
	return parsed
}
