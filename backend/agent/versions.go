package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bridge/backend/core/bridge"
)

// tried are the oldest and newest tested versions of the CLIs; build/clis pins the
// newest.
var tried = triedVersions()

// triedVersions returns the tested versions of the kinds that have any.
func triedVersions() map[bridge.AgentKind][2]string {
	versions := map[bridge.AgentKind][2]string{}
	for _, kind := range bridge.Kinds() {
		if span := bridge.TraitsOf(kind).Tried; span[1] != "" {
			versions[kind] = span
		}
	}
	return versions
}

// Tried returns the tested versions of kind as text, or "" without any.
func Tried(kind bridge.AgentKind) string {
	span, known := tried[kind]
	switch {
	case !known:
		return ""
	case span[0] == span[1]:
		return span[0]
	default:
		return span[0] + " to " + span[1]
	}
}

// TriedAll returns the tested versions of every kind, for people.
func TriedAll() string {
	var all []string
	for _, kind := range bridge.Kinds() {
		if versions := Tried(kind); versions != "" {
			all = append(all, string(kind)+" "+versions)
		}
	}
	return strings.Join(all, ", ")
}

// VersionWords returns a version of kind and the tested ones as text, or "" if both
// are unknown.
func VersionWords(kind bridge.AgentKind, version string) string {
	versions := Tried(kind)
	switch {
	case versions == "":
		return version
	case version == "":
		return "version not known; tried with " + versions
	default:
		return version + "; tried with " + versions
	}
}

// VersionProblem returns what may not work with an untested version of kind, or ""
// for a tested or unknown one.
func VersionProblem(kind bridge.AgentKind, version string) string {
	span, known := tried[kind]
	if !known || version == "" {
		return ""
	}
	if unknown := UnknownLayout(kind, version); unknown != "" {
		return unknown
	}
	var side string
	switch {
	case CompareVersions(version, span[0]) < 0:
		side = "older than " + span[0] + ", the oldest"
	case CompareVersions(version, span[1]) > 0:
		side = "newer than " + span[1] + ", the newest"
	default:
		return ""
	}
	return fmt.Sprintf("%s %s is %s that Bridge was tried with: what differs there may not work, and mail then waits until a session calls inbox.", kind, version, side)
}

// UnknownLayout returns why Bridge must not write settings for a version of kind,
// or "": a kind may store its plugins differently in another major version.
func UnknownLayout(kind bridge.AgentKind, version string) string {
	if !bridge.TraitsOf(kind).MajorOnly || version == "" || major(version) == major(tried[kind][1]) {
		return ""
	}
	return fmt.Sprintf("%s %s is not one that Bridge knows: it was tried with %s, and %[1]s of another major version does not load the plugin "+
		"that it has for version %[4]s, so its sessions would be connected and deaf.", kind, version, Tried(kind), major(tried[kind][1]))
}

// versionNote returns the note on a found CLI's version for lists, or "" for a
// tested one.
func versionNote(kind bridge.AgentKind, version string) string {
	switch {
	case Tried(kind) == "":
		return "Bridge was tried with a stand-in for this CLI only."
	case version == "":
		return "It did not tell its version; Bridge was tried with " + Tried(kind) + "."
	default:
		return VersionProblem(kind, version)
	}
}

var versionPattern = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

func major(version string) string {
	number, _, _ := strings.Cut(version, ".")
	return number
}

// CompareVersions compares dotted numbers; it is negative if a is older than b.
func CompareVersions(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(version string) []int {
	var list []int
	for part := range strings.SplitSeq(version, ".") {
		number, _ := strconv.Atoi(part) // the pattern allows only digits
		list = append(list, number)
	}
	return list
}
