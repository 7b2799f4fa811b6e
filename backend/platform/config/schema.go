package config

import (
	"maps"
	"reflect"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/prompt"
)

// Schema returns the JSON schema (2020-12) of config.json for editors. meanings holds a
// description of each setting by its path, such as jobs.maxJobs.
func Schema(meanings map[string]string) map[string]any {
	byDefault, _ := members(defaults()) // the defaults are plain values
	schema := knownMembers().schema("", meanings, byDefault)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "Settings of Bridge"
	schema["description"] = "~/.bridge/config.json. Comments and trailing commas are allowed."
	return schema
}

// choices are the words that a setting may have, and bounds the numbers.
var (
	choices = map[string][]any{
		"jobs.maxAccess": {job.AccessRead, job.AccessAsk, job.AccessEdit},
		"answerPrompts":  {prompt.Off, prompt.Away, prompt.Always},
		"prove":          {ProveAuto, ProveOff},
	}
	bounds = map[string][2]int{
		"port": {0, 65535}, "network.port": {0, 65535}, "maxHops": {0, bridge.HighestMaxHops}, "jobs.maxJobs": {1, job.HighestMaxJobs},
		"mail.wakesPerHour": {0, bridge.HighestWakesPerHour}, "mail.secondsBetweenWakes": {0, bridge.HighestSecondsBetween}, "mail.exchange": {0, bridge.HighestExchange},
		"jobs.maxDelegateDepth": {1, job.HighestDepth}, "backups.everyHours": {1, mostBackupHours},
	}
)

// schema returns the schema of one member. byDefault is its default value, if any.
func (n *memberNode) schema(path string, meanings map[string]string, byDefault any) map[string]any {
	found := map[string]any{}
	if meaning := meanings[path]; meaning != "" {
		found["description"] = meaning
	}
	if n.members == nil {
		maps.Copy(found, typeSchema(n.valueType))
		if byDefault != nil {
			found["default"] = byDefault
		}
		if values := choices[path]; values != nil {
			found["enum"] = values
		}
		if bound, has := bounds[path]; has {
			found["minimum"], found["maximum"] = bound[0], bound[1]
		}
		return found
	}
	defaultsBelow, _ := byDefault.(map[string]any)
	prefix := path + "."
	if path == "" {
		prefix = ""
	}
	below := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(n.members)) {
		below[name] = n.members[name].schema(prefix+name, meanings, defaultsBelow[name])
	}
	found["type"], found["properties"], found["additionalProperties"] = "object", below, false
	return found
}

// typeSchema returns the schema of a Go type.
func typeSchema(valueType reflect.Type) map[string]any {
	switch valueType.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{typeSchema(valueType.Elem()), map[string]any{"type": "null"}}}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(valueType.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": typeSchema(valueType.Elem())}
	case reflect.Struct:
		return nodeOf(valueType).schema("", nil, nil)
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	default:
		return map[string]any{}
	}
}
