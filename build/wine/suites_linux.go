package main

import (
	"path/filepath"
	"strings"
	"time"
)

// suite is a package whose tests run under Wine.
type suite struct {
	name    string // below backend
	gaps    []gap
	minutes int // how long it may take, 0 for 5
}

// gap is a group of tests that Wine cannot show.
type gap struct {
	tests string // a regular expression of their names
	why   string
}

// Reasons of several gaps.
const (
	noLinks    = "Wine 8 makes symbolic links that it does not show as links"
	linuxPaths = "it compares with paths of Linux"
)

// suites are all suites, the quick ones first.
var suites = []suite{
	{name: "platform/disk", gaps: []gap{{"TestCanonicalFollowsEveryLink|TestRWM_13_OtherFilesAreReplaced", noLinks}}},
	{name: "platform/sqlitex", gaps: []gap{{"TestLockIsExclusiveAndDiesWithItsProcess", "Wine keeps the files of a killed process open for a moment"}}},
	{name: "platform/wire"},
	{name: "platform/lifecycle"},
	{name: "platform/proc", gaps: []gap{
		{"TestAncestorsAreNearestFirst", "the parent of the test is Wine's loader, which is no Windows process"},
		{"TestMSG_11_TheProgramOfHooksIsTheOneBesideBridge", noLinks},
	}},
	{name: "platform/config", gaps: []gap{
		{"TestRWM_13_SettingsBehindALinkStayThere|TestSEC_09_FoldersInWhichNoJobMayWrite", noLinks},
		{"TestSEC_10_SocketsOfJobs", linuxPaths},
	}},
	{name: "agent/connect"},
	{name: "agent/setup", gaps: []gap{
		{"TestSEC_07_RulesComeAndGoByTheOwnersWord|TestSEC_07_RulesGoFromAFileThatWasChanged|TestSEC_07_TheRulesOf|TestSEC_07_TheManifestRemembers", linuxPaths},
		{"TestMSG_11_SeveralHooksOfOneEvent|TestMSG_11_TheLongFormOfAHookIsReplacedWhereItStands|TestNED_02", "it compares with command lines of a Unix shell"},
		{"TestALinkToNowhereIsRefused|TestRWM_13_ALinkToAFileOfBridgesStays", noLinks},
	}},
	{name: "storage/rules", gaps: []gap{{"TestNED_04_AnOpenWordLeadsNowhereElse", noLinks}}},
	{name: "doors/dashboard/guard"},
	{name: "doors/dashboard", gaps: []gap{
		{"TestRMT_06_WhatCannotBeMeantIsRefused|TestTheShapesOfTheNetwork|TestNED_04_RulesAreListed|TestTheShapesOfMaintenance", linuxPaths},
	}},
	{name: "storage/maintain/inventory"},
	{name: "storage/maintain/lease"},
	{name: "storage/store", minutes: 20, gaps: []gap{
		{"TestVER_06_WhatIsNoFileInThePlaceOfTheIndexIsLeftAsItIs|TestVER_06_WhatIsNoStoreOfOursIsRefusedUnchanged", noLinks},
	}},
	{name: "storage/maintain", minutes: 20},
}

func suiteNames() []string {
	names := make([]string, len(suites))
	for i, s := range suites {
		names[i] = s.name
	}
	return names
}

// folder returns the package's folder in the checkout.
func (s suite) folder() string { return filepath.Join("backend", filepath.FromSlash(s.name)) }

// limit returns how long the suite may take.
func (s suite) limit() time.Duration {
	if s.minutes == 0 {
		return 5 * time.Minute
	}
	return time.Duration(s.minutes) * time.Minute
}

// skipped returns a regular expression of the tests in the gaps, or "".
func (s suite) skipped() string {
	var all []string
	for _, gap := range s.gaps {
		all = append(all, gap.tests)
	}
	return strings.Join(all, "|")
}
