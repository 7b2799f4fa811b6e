package check

import (
	"maps"
	"os"
	"slices"

	"bridge/backend/agent/programs"
	"bridge/backend/core/needs"
	"bridge/backend/platform/config"
)

// checkPrograms checks whether the programs that connected agents start still exist.
func checkPrograms(k *checker) error {
	missing, err := programs.Gone(k.dir)
	if err != nil {
		return nil //nolint:nilerr // checkJSON says what is wrong with the file
	}
	for _, kind := range slices.Sorted(maps.Keys(missing)) {
		k.report.GonePrograms = append(k.report.GonePrograms, GoneProgram{kind, missing[kind]})
		k.find(ProgramGone, programs.InstallFile, needs.GoneDetail(kind, missing[kind]))
	}
	return nil
}

// checkVariables reports misspelt variables, and unusable values, of the environment of
// this program.
func checkVariables(find func(code Code, path, detail string)) error {
	for _, sentence := range config.MisspeltVariables(os.Environ()) {
		find(VariableUnknown, "environment", sentence)
	}
	for _, sentence := range config.InvalidVariables(os.Environ()) {
		find(VariableInvalid, "environment", sentence)
	}
	return nil
}
