package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Inspect returns details of a process of this user. It fails with [ErrGone] if no
// such process runs.
func Inspect(pid int) (Details, error) {
	folder := "/proc/" + strconv.Itoa(pid) + "/"
	read := func(name string) (string, error) {
		data, err := os.ReadFile(folder + name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			err = ErrGone
		}
		return string(data), err
	}
	stat, statErr := read("stat")
	environ, environErr := read("environ")
	cgroup, cgroupErr := read("cgroup")
	if err := errors.Join(statErr, environErr, cgroupErr); err != nil {
		return Details{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= statTerminal || fields[statState] == "Z" {
		return Details{}, fmt.Errorf("look at process %d: %w", pid, ErrGone)
	}
	return Details{
		Terminal: fields[statTerminal] != "0", Cgroup: strings.TrimSpace(cgroup),
		Environ: strings.FieldsFunc(environ, func(r rune) bool { return r == 0 }),
	}, nil
}
