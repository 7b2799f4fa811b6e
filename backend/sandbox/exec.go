package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/bridge"
)

// Main is the command behind CommandLine, with the arguments that follow the
// runner: it takes the floor and becomes the program, or waits for it and ends as it
// did. It returns only when the floor or the program's start failed; then nothing ran.
func Main(args, env []string) error {
	rules, argv, err := parse(args)
	if err != nil {
		return err
	}
	return Exec(rules, argv, env)
}

func parse(args []string) (Rules, []string, error) {
	end := slices.Index(args, endOfFlags)
	if end < 0 || end+1 == len(args) {
		return Rules{}, nil, bridge.Errorf(bridge.Invalid, "name the program behind %s", endOfFlags)
	}
	var rules Rules
	for _, arg := range args[:end] {
		flags := rules.flags()
		if i := slices.IndexFunc(flags, func(f flag) bool { return f.name == arg }); i >= 0 {
			*flags[i].rule = true
			continue
		}
		to := &rules.Writable
		folder, ok := strings.CutPrefix(arg, writableFlag)
		if !ok {
			to = &rules.Unlinked
			folder, ok = strings.CutPrefix(arg, unlinkedFlag)
		}
		if !ok || !filepath.IsAbs(folder) {
			return Rules{}, nil, bridge.Errorf(bridge.Invalid, "unknown argument %q: use %s or %s and an absolute folder, %s, %s or %s", arg, writableFlag, unlinkedFlag, networkFlag, socketsFlag, endAllFlag)
		}
		*to = append(*to, folder)
	}
	if argv := args[end+1:]; filepath.IsAbs(argv[0]) {
		return rules, argv, nil
	}
	return Rules{}, nil, bridge.Errorf(bridge.Invalid, "the program %q is not named by an absolute path", args[end+1])
}
