package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ProgramOr returns named, or the path of this program if named is "". It fails if
// the system does not report that path.
func ProgramOr(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return own, nil
}

// Sibling returns the path of the program name in the folder of program, which is
// called own; packages install both there. It returns "" if the file is missing,
// such as for a program that was built alone.
func Sibling(program, own, name string) string {
	places := []string{program}
	if target, err := filepath.EvalSymlinks(program); err == nil && target != program {
		places = append(places, target)
	}
	for _, place := range places {
		folder, base := filepath.Split(place)
		found := filepath.Join(folder, strings.Replace(base, own, name, 1))
		if info, err := os.Stat(found); err == nil && info.Mode().IsRegular() && found != place {
			return found
		}
	}
	return ""
}
