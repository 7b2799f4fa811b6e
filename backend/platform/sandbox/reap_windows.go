package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"bridge/backend/core/job"
)

// adopt puts this process and its later children into a Job Object. Only the end of
// this process closes the handle, which then ends the others.
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
		_ = windows.CloseHandle(object) // the object is empty
		return fmt.Errorf("enter a job object: %w", err)
	}
	return nil
}

// adopts returns false: an orphan keeps its dead parent's id, and the Job Object
// ends it together with this process.
func adopts() bool { return false }

func hasChildren() bool { return false }

func marked(Mark) ([]int, error) { return nil, nil }

func collect([]job.Process) {}
