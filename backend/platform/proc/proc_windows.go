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

// start keeps the process out of our console and our process group and, where
// the job object that an agent CLI may have put us into allows it, out of that
// too: such a job ends everything in it together with the CLI.
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

// stillActive is the exit code of a process that has none yet.
const stillActive = 259

// keepsParent says that a process keeps the number of a parent that has ended.
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
	defer func() { _ = windows.CloseHandle(snapshot) }() // only read: nothing can be lost
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

// startOf returns when a process was created, in 100 ns since 1601; 0 for one
// of another user, which may not be asked.
func startOf(pid uint32) (started uint64, running bool) {
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return 0, !errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	defer func() { _ = windows.CloseHandle(handle) }() // only read: nothing can be lost
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

// bootID: Windows has none that is readable without rights, and needs none
// here, because its start times are calendar times.
func bootID() (string, error) { return "-", nil }

// hold ends the process at once: children keep their parent's number on
// Windows, so the tree can still be told afterwards.
func hold(pid int) error { return kill(pid) }

func kill(pid int) error {
	handle, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(handle) }() // nothing can be lost
	err = windows.TerminateProcess(handle, 1)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return ErrGone // it is ending already
	}
	return err
}

// calendar turns a start, in 100 ns since 1601, into a time.
func calendar(start uint64) (time.Time, error) {
	created := windows.Filetime{HighDateTime: uint32(start >> 32), LowDateTime: uint32(start)}
	return time.Unix(0, created.Nanoseconds()), nil
}
