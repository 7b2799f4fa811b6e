package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"bridge/backend/testing/testkit"
)

// runSoak builds the program, kills it under load and lets its writes and syncs fail, each
// once; args go to go test. It takes about half an hour. With -hours, it measures a broker
// at work for so many hours instead, and draws what was measured.
func runSoak(ctx context.Context, p project, args []string) error {
	call, figure, err := p.soakCall(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(figure), 0o700); err != nil {
		return err
	}
	if err := buildBridge(ctx, p); err != nil {
		return err
	}
	err = p.do(ctx, call)
	if _, missing := os.Stat(figure); missing == nil && slices.ContainsFunc(call.env, isHours) {
		p.say("the figures are drawn in %s", figure)
	}
	return err
}

// hoursEnv tells the soak of a day how many hours it lasts.
const hoursEnv = "BRIDGE_SOAK_HOURS"

func isHours(entry string) bool { return strings.HasPrefix(entry, hoursEnv+"=") }

// soakCall returns the call of go test for the arguments of the task, and the file into
// which a soak of hours draws its figures. It fails for hours that are no positive number.
func (p project) soakCall(args []string) (call step, figure string, err error) {
	figure = p.at(".cache", "soak", "day.svg")
	call = step{env: []string{"BRIDGE_TEST_BIN=" + p.binary()}, name: "go"}
	at := slices.IndexFunc(args, func(arg string) bool { return arg == "-hours" || strings.HasPrefix(arg, "-hours=") })
	if at < 0 {
		call.env = append(call.env, testkit.Env+"=1")
		call.args = append([]string{"test", "-count=1", "-p=1", "-timeout", "2h", "-v", "./backend/testing/soak", "./backend/testing/faults"}, args...)
		return call, figure, nil
	}
	_, text, joined := strings.Cut(args[at], "=")
	rest := args[at+1:]
	if !joined && len(rest) > 0 {
		text, rest = rest[0], rest[1:]
	}
	hours, err := strconv.ParseFloat(text, 64)
	if err != nil || !(hours > 0 && hours <= 24*366) {
		return step{}, "", badArgument(fmt.Sprintf("soak %s: -hours takes a number of hours, as 24 or 0.5", strings.Join(args, " ")))
	}
	most := time.Duration(hours*float64(time.Hour)) + time.Hour
	call.env = append(call.env, hoursEnv+"="+text, "BRIDGE_SOAK_FIGURE="+figure)
	call.args = append([]string{"test", "-count=1", "-timeout", most.String(), "-v", "-run=^TestPRF_06_ADay$", "./backend/testing/soak"}, args[:at]...)
	call.args = append(call.args, rest...)
	return call, figure, nil
}
