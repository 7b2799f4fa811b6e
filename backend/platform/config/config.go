package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tailscale/hujson"

	"bridge/backend/core/bridge"
	"bridge/backend/core/prompt"
	"bridge/backend/platform/disk"
)

// Version is the form of config.json that this build writes and understands.
const Version = 1

// DefaultPort is the dashboard's port (contract: serve).
const DefaultPort = 4777

// maxConfigBytes bounds config.json, which people write by hand.
const maxConfigBytes = 1 << 20

// Config is what config.json says, with defaults where it says nothing. Members
// that this build does not know stay in the file through every UpdateConfig.
type Config struct {
	// Version is the form of the file; a missing one means 1.
	Version int `json:"version"`
	// Name is what this bridge is called in the dashboard; empty means the
	// computer's name.
	Name string `json:"name,omitempty"`
	// Port of the dashboard on loopback; 0 picks a free one.
	Port int `json:"port"`
	// AutoWake lets mail start a turn in an idle session.
	AutoWake bool `json:"autoWake"`
	// WakeOnDirect lets mail to an exact name or id do so even while AutoWake
	// is off (CHT-18).
	WakeOnDirect bool `json:"wakeOnDirect"`
	// MaxHops is the hop count from which mail wakes nobody, 0 to 100 (MSG-07).
	MaxHops int `json:"maxHops"`
	// Agents holds settings per agent kind.
	Agents map[bridge.AgentKind]Agent `json:"agents,omitempty"`
	// ACP are the agents of agents.acp by their names; only the owner writes them.
	ACP map[string]ACPAgent `json:"-"`
	// Desktop holds the settings of the desktop app.
	Desktop Desktop `json:"desktop"`
	// Claude holds the settings of claude's mod.
	Claude Claude `json:"claude"`
	// Jobs holds what the owner allows of delegated jobs.
	Jobs Jobs `json:"jobs"`
	// Network says what other PCs may do.
	Network Network `json:"network"`
	// AnswerPrompts says when permission prompts of sessions can be answered from the
	// page, too (NED-02).
	AnswerPrompts prompt.Mode `json:"answerPrompts"`
	// Away says that the owner is away, and prompts are kept for him on the page.
	Away bool `json:"away"`
}

// Claude is what config.json says about claude's mod.
type Claude struct {
	// StatusLine lets it show above the composer what waits (CHT-21).
	StatusLine bool `json:"statusLine"`
}

// Desktop is what config.json says about the desktop app.
type Desktop struct {
	// Notifications lets it show a notice when something needs the owner (DSK-07).
	Notifications bool `json:"notifications"`
	// Quiet is when it shows none; what is still there afterwards is told then (NED-05).
	Quiet Quiet `json:"quiet,omitzero"`
}

// Agent is what config.json says about one agent kind.
type Agent struct {
	// Bin is the path of the agent's program; empty means look on PATH.
	Bin string `json:"bin,omitempty"`
}

// defaults returns the settings of a home without a config.json.
func defaults() Config {
	return Config{
		Version:      Version,
		Port:         DefaultPort,
		WakeOnDirect: true,
		MaxHops:      bridge.DefaultMaxHops,
		Agents:       map[bridge.AgentKind]Agent{},
		Desktop:      Desktop{Notifications: true},
		Claude:       Claude{StatusLine: true},
		Network:      Network{Port: DefaultLinkPort},
		Jobs:         defaultJobs(),

		AnswerPrompts: prompt.Off,
	}
}

// Config reads config.json. A missing file gives the defaults; a damaged one, a
// bad value or a newer version is an error that names it.
func (h Home) Config() (Config, error) {
	_, config, err := readConfig(h)
	return config, err
}

// UpdateConfig reads config.json, lets change edit the settings and writes back
// the members that differ, and nothing else: unknown members, their order and
// the settings that were never set stay as they are. Without a difference
// nothing is written. It returns the settings in force.
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

// readConfig reads config.json. With a jobsProblem the config is right but for that.
func readConfig(h Home) (raw []byte, config Config, err error) {
	path := h.ConfigFile()
	raw, err = disk.ReadLimited(path, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return []byte("{}\n"), defaults(), nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, Config{}, errIsFile(h)
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
		return nil, config, bridge.Errorf(code, "%s: %w", path, err)
	}
	return raw, config, nil
}

// errNewer reports a file of a form that only later builds know (VER-06).
var errNewer = errors.New("it was written by a newer Bridge")

// parse reads what config.json holds. A member that is there twice is an error that
// names it: which of them counts would be a guess.
func parse(raw []byte) (Config, error) {
	_, raw = disk.CutBOM(raw)
	if duplicate, found := disk.FindDuplicate(raw); found {
		return Config{}, duplicate
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return Config{}, jsonProblem(err)
	}
	if members == nil {
		return Config{}, errors.New("it is not a JSON object of settings")
	}
	// The version comes first: the other members of a newer form may mean
	// something else.
	if err := checkVersion(members["version"]); err != nil {
		return Config{}, err
	}
	config := defaults()
	if err := json.Unmarshal(raw, &config); err != nil {
		return Config{}, jsonProblem(err)
	}
	var err error
	if config.ACP, err = readACP(members["agents"]); err != nil {
		return Config{}, err
	}
	delete(config.Agents, acpMember) // it is no kind with a program of its own
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

// check names the first value that is out of bounds.
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
	if err := c.Network.check(); err != nil {
		return err
	}
	return c.Jobs.check() // last: the others are right where only this is wrong
}

// jsonProblem says in words what encoding/json found, with the member's name.
func jsonProblem(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return fmt.Errorf("%s must be a %s, not a %s", wrongType.Field, kindName(wrongType), wrongType.Value)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("it is not valid JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("it is not a JSON object of settings: %w", err)
}

func kindName(err *json.UnmarshalTypeError) string {
	switch name := err.Type.Kind().String(); name {
	case "int":
		return "whole number"
	case "bool":
		return "true or false"
	case "map", "struct":
		return "JSON object"
	default:
		return name
	}
}

// patch edits the members of raw in which before and after differ. A byte order mark
// stays.
func patch(raw []byte, before, after Config) ([]byte, error) {
	mark, text := disk.CutBOM(raw)
	old, oldErr := members(before)
	want, wantErr := members(after)
	file, fileErr := members(json.RawMessage(text))
	if err := errors.Join(oldErr, wantErr, fileErr); err != nil {
		return nil, err
	}
	operations := differences("", old, want, file)
	if len(operations) == 0 {
		return raw, nil
	}
	document, err := hujson.Parse(bytes.Clone(text)) // it is laid out anew in place
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
	document.Format()
	return append(bytes.Clone(mark), document.Pack()...), nil
}

// members returns the JSON form of value, which is an object, as a map.
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

// differences lists the steps that turn old into want within file, which may
// hold more members than both, or fewer. Their order is that of the names.
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
		_, kept := want[name]
		_, inFile := file[name]
		if !kept && inFile {
			found = append(found, operation{Op: "remove", Path: path + "/" + pointerEscapes.Replace(name)})
		}
	}
	return found
}

// pointerEscapes writes a member's name as a JSON pointer's part (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
