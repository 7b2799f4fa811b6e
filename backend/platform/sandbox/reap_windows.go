package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"bridge/backend/core/job"
)

// adopt puts this process, and with it all that it will start, into a Job Object.
// Its handle is never closed but by the end of this process, which ends the rest.
func adopt() error {
	object, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("make a job object: %w", err)
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(
		object, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), //nolint:gosec // the call takes its structure so
	)
	if err == nil {
		err = windows.AssignProcessToJobObject(object, windows.CurrentProcess())
	}
	if err != nil {
		_ = windows.CloseHandle(object) // nothing is in it
		return fmt.Errorf("enter a job object: %w", err)
	}
	return nil
}

// adopts is false: an orphan keeps its dead parent's number, and the Job Object
// ends it together with this process.
func adopts() bool { return false }

func hasChildren() bool { return false }

func marked(Mark) ([]int, error) { return nil, nil }

func collect([]job.Process) {}
