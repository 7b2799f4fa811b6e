package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"bridge/backend/core/bridge"
	"bridge/backend/platform/disk"
)

// memberNode is a member of config.json that this build knows.
type memberNode struct {
	members   map[string]*memberNode // of an object; nil for any other value
	valueType reflect.Type           // the type of the value
}

// knownMembers returns the tree of all settings.
func knownMembers() *memberNode {
	root := nodeOf(reflect.TypeFor[Config]())
	kinds := map[string]*memberNode{acpMember: {valueType: reflect.TypeFor[map[string]ACPAgent]()}}
	for _, kind := range bridge.Kinds() {
		kinds[string(kind)] = nodeOf(reflect.TypeFor[Agent]())
	}
	root.members["agents"] = &memberNode{members: kinds}
	root.members["$schema"] = &memberNode{valueType: reflect.TypeFor[string]()} // for editors
	return root
}

func nodeOf(valueType reflect.Type) *memberNode {
	node := &memberNode{valueType: valueType}
	if valueType.Kind() != reflect.Struct {
		return node
	}
	node.members = map[string]*memberNode{}
	for i := range valueType.NumField() {
		if name, _, _ := strings.Cut(valueType.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			node.members[name] = nodeOf(valueType.Field(i).Type)
		}
	}
	return node
}

// paths returns the paths of all settings that are no objects, sorted.
func (n *memberNode) paths(prefix string) (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(n.members)) {
		if below := n.members[name]; below.members != nil {
			paths = append(paths, below.paths(prefix+name+".")...)
		} else {
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

// Members returns the paths of all settings, such as jobs.maxJobs, sorted.
func Members() []string {
	return slices.DeleteFunc(knownMembers().paths(""), func(path string) bool { return path == "$schema" || path == "version" })
}

// UnknownMember is a member of config.json that no part of this build reads.
type UnknownMember struct {
	Path  string `json:"path"` // such as jobs.maxjob
	Line  int    `json:"line"`
	Meant string `json:"meant"` // the path that its writer may have meant, or ""
}

// Text returns the sentence that names the member and the likely one.
func (u UnknownMember) Text() string {
	text := fmt.Sprintf("line %d: %q is not a setting", u.Line, bridge.OneLine(u.Path))
	if u.Meant != "" {
		text += fmt.Sprintf(". Did you mean %q?", u.Meant)
	}
	return text
}

// Unknown returns the members of the file that this build does not know, by line. It
// fails as [Home.Config] does.
func (f File) Unknown() ([]UnknownMember, error) {
	raw, _, err := readConfig(f.Home)
	if err != nil {
		return nil, err
	}
	_, text := disk.CutBOM(raw)
	text = disk.PlainJSON(text)
	file, err := members(json.RawMessage(text))
	if err != nil {
		return nil, err
	}
	known := knownMembers()
	unknown := known.unknown("", file, known.paths(""))
	for i, member := range unknown {
		if offset, found := disk.FindMember(text, member.Path); found {
			unknown[i].Line = disk.LineAt(text, offset)
		}
	}
	slices.SortStableFunc(unknown, func(a, b UnknownMember) int { return a.Line - b.Line })
	return unknown, nil
}

// unknown returns the unknown members of an object of the file. all are the paths of all
// settings.
func (n *memberNode) unknown(prefix string, file map[string]any, all []string) (found []UnknownMember) {
	for _, name := range slices.Sorted(maps.Keys(file)) {
		below, known := n.members[name]
		inside, isObject := file[name].(map[string]any)
		switch {
		case !known:
			found = append(found, UnknownMember{Path: prefix + name, Meant: meantMember(prefix, name, slices.Sorted(maps.Keys(n.members)), all)})
		case below.members != nil && isObject:
			found = append(found, below.unknown(prefix+name+".", inside, all)...)
		}
	}
	return found
}

// meantMember returns the likely path of an unknown member: a similar one beside it, or
// one with the same name elsewhere.
func meantMember(prefix, name string, beside, all []string) string {
	if like := bridge.Similar(name, beside); len(like) > 0 {
		return prefix + like[0]
	}
	for _, path := range all {
		if last := path[strings.LastIndexByte(path, '.')+1:]; strings.EqualFold(last, name) {
			return path
		}
	}
	return ""
}

// checkMember fails with NotFound, and a suggestion, if there is no setting with this path.
func checkMember(path string) (*memberNode, error) {
	node := knownMembers()
	for name := range strings.SplitSeq(path, ".") {
		below, known := node.members[name]
		if !known {
			if node.valueType != nil && node.valueType.Kind() == reflect.Map { // the keys of such a member are its writer's
				return &memberNode{valueType: node.valueType.Elem()}, nil
			}
			err := fmt.Sprintf("there is no setting %q", path)
			if question := bridge.DidYouMean(path, Members()); question != "" {
				err += ". " + question
			} else if meant := meantMember("", path, nil, Members()); meant != "" {
				err += ". Did you mean " + meant + "?"
			} else {
				err += ": `bridge config get` lists them"
			}
			return nil, bridge.Errorf(bridge.NotFound, "%s", err)
		}
		node = below
	}
	return node, nil
}

// Member returns the value in force of the setting with this path, as JSON. It fails with
// NotFound for an unknown setting, and as [Home.Config] does.
func (f File) Member(path string) (json.RawMessage, error) {
	if _, err := checkMember(path); err != nil {
		return nil, err
	}
	_, config, err := readConfig(f.Home)
	if err != nil {
		return nil, err
	}
	if rest, is := strings.CutPrefix(path, "agents."+acpMember); is { // only its owner writes it, so no change holds it
		return acpOf(config.ACP, strings.TrimPrefix(rest, "."))
	}
	settings, err := members(config)
	if err != nil {
		return nil, err
	}
	var value any = settings
	for name := range strings.SplitSeq(path, ".") {
		inside, isObject := value.(map[string]any)
		if value = inside[name]; !isObject || value == nil {
			return json.RawMessage("null"), nil // not set, and without a default
		}
	}
	return json.Marshal(value)
}

// acpOf returns the agent with that name as JSON, or all for "".
func acpOf(agents map[string]ACPAgent, name string) (json.RawMessage, error) {
	if name == "" {
		return json.Marshal(agents)
	}
	if agent, exists := agents[name]; exists {
		return json.Marshal(agent)
	}
	return json.RawMessage("null"), nil
}

// SetMember writes a setting. The value is JSON, or a text without quotation marks where
// the setting is a text. It fails with NotFound for an unknown setting, and with Invalid
// if the value does not fit.
func (f File) SetMember(path, value string) error {
	node, err := checkMember(path)
	if err != nil {
		return err
	}
	isText := node.valueType != nil && node.valueType.Kind() == reflect.String
	if node.members != nil {
		return bridge.Errorf(bridge.Invalid, "%s has members: set one of %s", path, strings.Join(node.paths(path+"."), ", "))
	}
	data := []byte(value)
	if isText && !strings.HasPrefix(value, `"`) || !json.Valid(data) {
		data, err = json.Marshal(value)
		if err != nil {
			return err
		}
	}
	return f.edit(path, data)
}

// UnsetMember takes a member out of the file, also an unknown one. It fails with NotFound
// if the file does not have it.
func (f File) UnsetMember(path string) error { return f.edit(path, nil) }

// edit sets the member of the file, or removes it if value is nil. Comments stay.
func (f File) edit(path string, value json.RawMessage) error {
	raw, _, err := readConfig(f.Home)
	if err != nil {
		return err
	}
	mark, text := disk.CutBOM(raw)
	file, err := members(json.RawMessage(disk.PlainJSON(text)))
	if err != nil {
		return err
	}
	steps, names := []operation{}, strings.Split(path, ".")
	pointer := ""
	for i, name := range names {
		pointer += "/" + pointerEscapes.Replace(name)
		inside, isObject := file[name].(map[string]any)
		last := i == len(names)-1
		switch _, exists := file[name]; {
		case value == nil && !exists:
			return bridge.Errorf(bridge.NotFound, "config.json does not set %s: nothing was changed", path)
		case value == nil && last:
			steps = append(steps, operation{Op: "remove", Path: pointer})
		case last:
			steps = append(steps, operation{Op: "add", Path: pointer, Value: value})
		case !isObject:
			steps = append(steps, operation{Op: "add", Path: pointer, Value: struct{}{}})
		}
		file = inside
	}
	document, err := hujson.Parse(bytes.Clone(text))
	if err != nil {
		return disk.ExplainJSON(text, err)
	}
	encoded, err := json.Marshal(steps)
	if err == nil {
		err = document.Patch(encoded)
	}
	if err != nil {
		return bridge.Errorf(bridge.Internal, "config.json is left unchanged: %w", err)
	}
	edited := append(bytes.Clone(mark), formatLike(document, text)...)
	if _, err := parse(edited); err != nil {
		return bridge.Errorf(bridge.Invalid, "config.json is left unchanged: %w", err)
	}
	return ConfigEdit{home: f.Home, raw: raw, edited: edited}.Save()
}
