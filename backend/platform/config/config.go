package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"bridge/backend/core/bridge"
	"bridge/backend/core/prompt"
	"bridge/backend/platform/disk"
)

// Version is the version of config.json that this build writes and understands.
const Version = 1

// DefaultPort is the dashboard's port (contract: serve).
const DefaultPort = 4777

// maxConfigBytes bounds the size of config.json, which people edit by hand.
const maxConfigBytes = 1 << 20

// Config is the content of config.json with defaults for missing members.
// UpdateConfig keeps the members that this build does not know.
type Config struct {
	// Version is the version of the file; a missing one means 1.
	Version int `json:"version"`
	// Name is this bridge's name in the dashboard; empty means the computer's name.
	Name string `json:"name,omitempty"`
	// Port is the dashboard's port on loopback; 0 picks a free one.
	Port int `json:"port"`
	// AutoWake lets mail start a turn in an idle session.
	AutoWake bool `json:"autoWake"`
	// WakeOnDirect lets mail to an exact name or id start a turn even if AutoWake
	// is off (CHT-18).
	WakeOnDirect bool `json:"wakeOnDirect"`
	// MaxHops is the hop count from which mail wakes no session, 0 to 100 (MSG-07).
	MaxHops int `json:"maxHops"`
	// Mail limits the mail of agents (QUI-02, QUI-03).
	Mail Mail `json:"mail"`
	// Agents holds settings per agent kind.
	Agents map[bridge.AgentKind]Agent `json:"agents,omitempty"`
	// ACP holds the agents of agents.acp by name; only the owner writes them.
	ACP map[string]ACPAgent `json:"-"`
	// Desktop holds the settings of the desktop app.
	Desktop Desktop `json:"desktop"`
	// Claude holds the settings of Claude Code's mod.
	Claude Claude `json:"claude"`
	// Jobs holds the owner's limits for delegated jobs.
	Jobs Jobs `json:"jobs"`
	// Network holds the permissions of other PCs.
	Network Network `json:"network"`
	// AnswerPrompts controls when sessions' permission prompts can also be answered
	// on the dashboard (NED-02).
	AnswerPrompts prompt.Mode `json:"answerPrompts"`
	// Away means that the owner is away, and the dashboard keeps prompts for the owner.
	Away bool `json:"away"`
	// Backups holds the settings of automatic backups (STO-11).
	Backups Backups `json:"backups"`
	// Prove controls whether Bridge tries the routes into a new version of an agent by
	// itself (CAN-02).
	Prove ProveMode `json:"prove"`
}

// Mail holds the limits for mail of agents in config.json (QUI-02, QUI-03).
type Mail struct {
	// WakesPerHour is how often such mail wakes one session in an hour; 0 means no limit.
	WakesPerHour int `json:"wakesPerHour"`
	// SecondsBetweenWakes is the time in which all such mail shares one wake; 0 means none.
	SecondsBetweenWakes int `json:"secondsBetweenWakes"`
	// Exchange is how many messages two sessions may exchange in 15 minutes, without the
	// owner and without work, before the owner is asked; 0 means any number.
	Exchange int `json:"exchange"`
}

func (m Mail) check() error {
	if m.WakesPerHour < 0 || m.WakesPerHour > bridge.HighestWakesPerHour {
		return fmt.Errorf("mail.wakesPerHour must be between 0 and %d, not %d", bridge.HighestWakesPerHour, m.WakesPerHour)
	}
	if m.SecondsBetweenWakes < 0 || m.SecondsBetweenWakes > bridge.HighestSecondsBetween {
		return fmt.Errorf("mail.secondsBetweenWakes must be between 0 and %d, not %d", bridge.HighestSecondsBetween, m.SecondsBetweenWakes)
	}
	if m.Exchange < 0 || m.Exchange > bridge.HighestExchange {
		return fmt.Errorf("mail.exchange must be between 0 and %d, not %d", bridge.HighestExchange, m.Exchange)
	}
	return nil
}

// Backups holds the settings of the automatic backups of messages in config.json.
// The variables of the environment overrule them.
type Backups struct {
	// Auto backs up the messages every EveryHours.
	Auto       bool `json:"auto"`
	EveryHours int  `json:"everyHours"`
	// Keep is how many sets stay in place; older ones move to backups/archive. 0
	// keeps all there.
	Keep int `json:"keep"`
}

func (b Backups) check() error {
	if b.EveryHours < 1 || b.EveryHours > mostBackupHours {
		return fmt.Errorf("backups.everyHours must be between 1 and %d, not %d", mostBackupHours, b.EveryHours)
	}
	if b.Keep < 0 || b.Keep > math.MaxInt32 {
		return fmt.Errorf("backups.keep must be between 0 and %d, not %d", math.MaxInt32, b.Keep)
	}
	return nil
}

// Claude holds the settings of Claude Code's mod in config.json.
type Claude struct {
	// StatusLine shows the number of waiting messages above the composer (CHT-21).
	StatusLine bool `json:"statusLine"`
}

// Desktop holds the settings of the desktop app in config.json.
type Desktop struct {
	// Notifications shows a notice when an event needs the owner (DSK-07).
	Notifications bool `json:"notifications"`
	// Quiet is the time without notices. Events that are still open afterwards are shown then (NED-05).
	Quiet Quiet `json:"quiet,omitzero"`
}

// Agent holds the settings of one agent kind in config.json.
type Agent struct {
	// Bin is the path of the agent's program; empty means a search on PATH.
	Bin string `json:"bin,omitempty"`
}

// defaults returns the settings of a home without a config.json.
func defaults() Config {
	return Config{
		Version:      Version,
		Port:         DefaultPort,
		WakeOnDirect: true,
		MaxHops:      bridge.DefaultMaxHops,
		Mail:         Mail{WakesPerHour: bridge.DefaultWakesPerHour, SecondsBetweenWakes: int(bridge.DefaultBetweenWakes / time.Second), Exchange: bridge.DefaultExchange},
		Agents:       map[bridge.AgentKind]Agent{},
		Desktop:      Desktop{Notifications: true},
		Claude:       Claude{StatusLine: true},
		Network:      Network{Port: DefaultLinkPort},
		Jobs:         defaultJobs(),
		Backups:      Backups{EveryHours: int(defaultBackupInterval / time.Hour), Keep: defaultBackupRetention},

		AnswerPrompts: prompt.Off,
		Prove:         ProveAuto,
	}
}

// Config reads config.json; a missing file gives the defaults. It fails, and names the
// cause, if the file is unreadable (Storage), damaged, newer or has a bad value.
func (h Home) Config() (Config, error) {
	_, config, err := readConfig(h)
	return config, err
}

// UpdateConfig reads config.json, calls change and writes only the members that
// differ. Unknown members, the order and unset settings stay unchanged. Without a
// difference it writes nothing. It returns the settings in force, and fails with
// Conflict if the file keeps changing meanwhile.
func (h Home) UpdateConfig(change func(*Config) error) (Config, error) {
	for tries := 3; ; tries-- {
		edit, err := planConfig(h, func(c *Config, _ []byte) error { return change(c) })
		if err == nil {
			err = edit.Save()
		}
		if bridge.CodeOf(err) != bridge.Conflict || tries == 1 {
			return edit.After, err
		}
	}
}

// readConfig reads config.json. If err is a jobsProblem, config is valid except for its jobs.
func readConfig(h Home) (raw []byte, config Config, err error) {
	path := h.ConfigFile()
	raw, err = disk.ReadLimited(path, maxConfigBytes)
	if h.isFile(err) {
		return nil, Config{}, errIsFile(h)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return []byte("{}\n"), defaults(), nil
	}
	if err != nil {
		return nil, Config{}, bridge.Errorf(bridge.Storage, "the settings cannot be read: %w", err)
	}
	config, err = parse(raw)
	if err != nil {
		code := bridge.Invalid
		if errors.Is(err, errNewer) {
			code = bridge.Unsupported
		}
		return nil, config, bridge.Errorf(code, "%s: %w", path, withLine(raw, err))
	}
	return raw, config, nil
}

// errNewer reports a file version that only later builds know (VER-06).
var errNewer = errors.New("it was written by a newer Bridge")

// parse decodes config.json. It fails for a duplicate member and names it, because
// choosing one of the two would be a guess.
func parse(raw []byte) (Config, error) {
	var members map[string]json.RawMessage
	if err := disk.DecodeJSON(raw, &members); err != nil {
		return Config{}, notSettings(err)
	}
	if members == nil {
		return Config{}, errors.New("it is not a JSON object of settings")
	}
	// The version is checked first: in a newer version, the other members may have
	// another meaning.
	if err := checkVersion(members["version"]); err != nil {
		return Config{}, err
	}
	config := defaults()
	if err := disk.DecodeJSON(raw, &config); err != nil {
		return Config{}, err
	}
	var err error
	if config.ACP, err = readACP(members["agents"]); err != nil {
		return Config{}, err
	}
	delete(config.Agents, acpMember) // it is not a kind with its own program
	return config, config.check()
}

func checkVersion(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	version, err := strconv.Atoi(string(raw))
	if err != nil || version < 1 {
		return fmt.Errorf("version must be a whole number from 1, not %s", raw)
	}
	if version > Version {
		return fmt.Errorf("%w (version %d, this one knows %d): update Bridge; the file is left unchanged", errNewer, version, Version)
	}
	return nil
}

// check returns an error that names the first value out of bounds.
func (c Config) check() error {
	if err := c.Desktop.Quiet.check(); err != nil {
		return err
	}
	if c.Name != "" {
		if err := bridge.CheckName(c.Name); err != nil {
			return fmt.Errorf("name: %w", err)
		}
	}
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("port must be between 0 and 65535, not %d", c.Port)
	}
	if c.MaxHops < 0 || c.MaxHops > bridge.HighestMaxHops {
		return fmt.Errorf("maxHops must be between 0 and %d, not %d", bridge.HighestMaxHops, c.MaxHops)
	}
	if _, err := prompt.ParseMode(string(c.AnswerPrompts)); err != nil {
		return err
	}
	if err := c.Prove.check(); err != nil {
		return err
	}
	if err := c.Mail.check(); err != nil {
		return err
	}
	if err := c.Backups.check(); err != nil {
		return err
	}
	if err := c.Network.check(); err != nil {
		return err
	}
	return c.Jobs.check() // last: the caller may use the rest if only jobs are wrong
}

// notSettings names what config.json must be, if it is JSON of another kind.
func notSettings(err error) error {
	if problem, is := errors.AsType[disk.JSONProblem](err); is && problem.Line == 0 {
		return errors.New("it is not a JSON object of settings")
	}
	return err
}

// withLine puts the line before an error that begins with the path of a member.
func withLine(raw []byte, err error) error {
	if _, placed := errors.AsType[disk.JSONProblem](err); placed {
		return err
	}
	_, text := disk.CutBOM(raw)
	text = disk.PlainJSON(text)
	member, _, _ := strings.Cut(strings.TrimSuffix(strings.Fields(err.Error())[0], ":"), ":")
	for ; member != ""; member = member[:max(0, strings.LastIndexByte(member, '.'))] {
		if offset, found := disk.FindMember(text, member); found {
			return fmt.Errorf("line %d: %w", disk.LineAt(text, offset), err)
		}
	}
	return err
}

// patch edits the members of raw in which before and after differ. It keeps a byte
// order mark.
func patch(raw []byte, before, after Config) ([]byte, error) {
	mark, text := disk.CutBOM(raw)
	old, oldErr := members(before)
	want, wantErr := members(after)
	file, fileErr := members(json.RawMessage(disk.PlainJSON(text)))
	if err := errors.Join(oldErr, wantErr, fileErr); err != nil {
		return nil, err
	}
	operations := differences("", old, want, file)
	if len(operations) == 0 {
		return raw, nil
	}
	document, err := hujson.Parse(bytes.Clone(text)) // the patch reformats the document in place
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	if err := document.Patch(encoded); err != nil {
		return nil, err
	}
	return append(bytes.Clone(mark), formatLike(document, text)...), nil
}

// formatLike returns the document with the indentation and the line ends of the original
// text: tabs and LF if that has no lines.
func formatLike(document hujson.Value, original []byte) []byte {
	document.Format()
	indent, end := []byte("\t"), []byte("\n")
	for line := range bytes.Lines(original) {
		if body := bytes.TrimLeft(line, " \t"); len(body) < len(line) && len(bytes.TrimSpace(body)) > 0 {
			indent = line[:len(line)-len(body)]
			break
		}
	}
	if bytes.Contains(original, []byte("\r\n")) {
		end = []byte("\r\n")
	}
	var text []byte
	for line := range bytes.Lines(document.Pack()) {
		body := bytes.TrimLeft(line, "\t")
		text = append(text, bytes.Repeat(indent, len(line)-len(body))...)
		text = append(text, bytes.TrimSuffix(body, []byte("\n"))...)
		if bytes.HasSuffix(body, []byte("\n")) {
			text = append(text, end...)
		}
	}
	return text
}

// members returns the JSON form of value, a JSON object, as a map.
func members(value any) (map[string]any, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	return object, json.Unmarshal(encoded, &object)
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// differences returns the steps that turn old into want within file, sorted by
// member name. file may hold more or fewer members than old and want.
func differences(path string, old, want, file map[string]any) []operation {
	var found []operation
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value, member := want[name], path+"/"+pointerEscapes.Replace(name)
		inside, isObject := value.(map[string]any)
		fileInside, fileHasObject := file[name].(map[string]any)
		if isObject && fileHasObject {
			oldInside, _ := old[name].(map[string]any)
			found = append(found, differences(member, oldInside, inside, fileInside)...)
			continue
		}
		if !reflect.DeepEqual(old[name], value) {
			found = append(found, operation{Op: "add", Path: member, Value: value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		_, exists := want[name]
		_, inFile := file[name]
		if !exists && inFile {
			found = append(found, operation{Op: "remove", Path: path + "/" + pointerEscapes.Replace(name)})
		}
	}
	return found
}

// pointerEscapes escapes a member's name for a JSON pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
