package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"bridge/backend/core/bridge"
)

// Main is the command behind CommandLine, with the arguments after the runner. It
// enters the sandbox and becomes the program, or waits for it and exits with its
// status. It returns only if the sandbox or the start failed; then nothing ran. It
// is also the program behind [ConnectorCommand].
func Main(args, env []string) error {
	if len(args) == 2 && args[0] == connectorFlag {
		return connectAll(args[1])
	}
	rules, argv, err := parse(args)
	if err != nil {
		return err
	}
	return Exec(rules, argv, env)
}

// connectorFlag makes this program a connector.
const connectorFlag = "--connector"

// ConnectorCommand returns the command of a connector for the socket at path. A
// connector receives sockets over [SupervisorFD], connects each to path, and
// answers each with the error number as one byte, 0 for success. It ends when the
// other end closes. The listener sees it as the caller: a process of the job that
// runs outside of the job's sandbox.
func ConnectorCommand(runner []string, path string) []string {
	return append(append([]string{}, runner...), connectorFlag, path)
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
		lists := rules.lists()
		i := slices.IndexFunc(lists, func(l list) bool { return strings.HasPrefix(arg, l.name) })
		if i < 0 || !filepath.IsAbs(arg[len(lists[i].name):]) {
			return Rules{}, nil, bridge.Errorf(bridge.Invalid, "unknown argument %q: use %s, %s, %s or %s and an absolute path, %s, %s, %s, %s, %s or %s",
				arg, writableFlag, unlinkedFlag, fileFlag, readableFlag, networkFlag, socketsFlag, keepFlag, connectsFlag, devicesFlag, endAllFlag)
		}
		*lists[i].paths = append(*lists[i].paths, arg[len(lists[i].name):])
	}
	if argv := args[end+1:]; filepath.IsAbs(argv[0]) {
		return rules, argv, nil
	}
	return Rules{}, nil, bridge.Errorf(bridge.Invalid, "the program %q is not named by an absolute path", args[end+1])
}
