package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// start keeps the process out of this console and process group. If possible, it
// also leaves the job object of an agent CLI, because such a job ends all its
// processes together with the CLI.
func start(command Command, output *os.File) (*exec.Cmd, error) {
	flags := uint32(windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP)
	if command.LowPriority {
		flags |= windows.IDLE_PRIORITY_CLASS
	}
	cmd := command.cmd(output)
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: flags | windows.CREATE_BREAKAWAY_FROM_JOB}
	err := cmd.Start()
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		cmd = command.cmd(output)
		cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: flags}
		err = cmd.Start()
	}
	return cmd, err
}

// stillActive is the exit code of a running process.
const stillActive = 259

// keepsParent reports whether a process keeps the id of an ended parent.
const keepsParent = true

func find(pid int) (Process, error) {
	all, err := list()
	if err != nil {
		return Process{}, err
	}
	for _, process := range all {
		if process.PID == pid {
			return process, nil
		}
	}
	return Process{}, ErrGone
}

func list() ([]Process, error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = windows.CloseHandle(snapshot) }() // only reading: no data can be lost
	entry := windows.ProcessEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	var all []Process
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		started, running := startOf(entry.ProcessID)
		if !running {
			continue
		}
		all = append(all, Process{
			PID:    int(entry.ProcessID),
			Parent: int(entry.ParentProcessID),
			Name:   windows.UTF16ToString(entry.ExeFile[:]),
			start:  started,
		})
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil, err
	}
	return all, nil
}

// startOf returns the creation time of a process in 100 ns since 1601. It is 0 for
// another user's process, which this user may not query.
func startOf(pid uint32) (started uint64, running bool) {
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return 0, !errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	defer func() { _ = windows.CloseHandle(handle) }() // only reading: no data can be lost
	var code uint32
	if err := windows.GetExitCodeProcess(handle, &code); err == nil && code != stillActive {
		return 0, false
	}
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(handle, &created, &exited, &kernel, &user); err != nil {
		return 0, true
	}
	return uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime), true
}

// bootID returns "-". Windows has no boot id readable without privileges, and its
// start times are calendar times anyway.
func bootID() (string, error) { return "-", nil }

// hold ends the process immediately. On Windows children keep their parent's id, so
// the tree is still recognizable.
func hold(pid int) error { return kill(pid) }

func kill(pid int) error {
	handle, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(handle) }() // no data can be lost
	err = windows.TerminateProcess(handle, 1)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return ErrGone // it is already ending
	}
	return err
}

// calendar converts a start, in 100 ns since 1601, into a time.
func calendar(start uint64) (time.Time, error) {
	created := windows.Filetime{HighDateTime: uint32(start >> 32), LowDateTime: uint32(start)}
	return time.Unix(0, created.Nanoseconds()), nil
}
