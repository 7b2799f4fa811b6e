package conformance

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bridge/backend/testing/testkit"
)

// lifetime is how long what survives lives at most: no broken layer leaves it for ever.
const lifetime = time.Minute

// surviveDetached starts a process in a session of its own, forked twice, with the job's
// environment.
func surviveDetached(s stage) (string, error) {
	cmd := helper(s, "detach", "stay", markOf(s))
	cmd.Env = append(os.Environ(), cmd.Env...)
	return "", cmd.Run()
}

// surviveBare is the same without an environment; the process ignores signals.
func surviveBare(s stage) (string, error) { return "", start(s, nil, nil, "detach", "stay", markOf(s)) }

// surviveHopping starts a process that starts another one and ends, again and again.
func surviveHopping(s stage) (string, error) {
	return "", start(s, nil, nil, "detach", "hop", markOf(s), strconv.FormatInt(time.Now().Add(lifetime).Unix(), 10))
}

// sendAfterDeath starts a process that waits for the runner's end and then sends a message.
func sendAfterDeath(s stage) (string, error) {
	return "", start(s, nil, nil, "detach", "send-after", markOf(s))
}

// runHelper is this program as one of the attacker's processes.
func runHelper(args []string) error {
	if args[0] == "attack" {
		return runAttack(args[1])
	}
	s, err := stageOf(os.Getenv(stageVariable))
	if err != nil {
		return err
	}
	switch args[0] {
	case "detach":
		return helper(s, args[1:]...).Start() // its parent ends
	case "send":
		for end := time.Now().Add(time.Second); os.Getppid() != s.Runner && time.Now().Before(end); <-time.After(time.Millisecond) {
			continue // its parents end
		}
		_, err := runBridge(s, bare(s), "send", victim, args[1])
		return err
	case "leave":
		return leave(s, args[1], args[2])
	case "stay":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		<-time.After(lifetime)
		return nil
	case "hop":
		return hop(s, args)
	case "send-after":
		return sendWhenGone(s, args[1])
	case "connect-unix", "connect-page":
		return passOn(args[0], args[1])
	case "bind":
		return bind(args[1], args[2])
	}
	return errors.New("unknown helper " + args[0])
}

// leave starts a command that sends a message, and ends after a time.
func leave(s stage, mark, after string) error {
	wait, err := time.ParseDuration(after)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.Program, "send", victim, mark, "--home", s.Home)
	cmd.Env = bare(s)
	if err := cmd.Start(); err != nil {
		return err
	}
	<-time.After(wait)
	return nil
}

func hop(s stage, args []string) error {
	deadline, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil || time.Now().Unix() > deadline {
		return err
	}
	return helper(s, args...).Start()
}

func sendWhenGone(s stage, mark string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	var err error
	for end := time.Now().Add(lifetime); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if !exists(filepath.Join("/proc", strconv.Itoa(s.Runner))) {
			if _, err = runBridge(s, bare(s), "send", victim, mark); err == nil {
				return nil
			}
		}
	}
	return err
}

// gitAttack changes a file and writes settings of the repository that name a program. The
// program makes the attack's file in its own folder outside. It returns the checkout.
func gitAttack(s stage, write func(git func(args ...string) error, program string) error) (string, error) {
	a, err := find(os.Args[3])
	if err != nil {
		return "", err
	}
	program := filepath.Join(s.Work, ".started-"+a.slug())
	script := "#!/bin/sh\n: > '" + a.target(s) + "'\n[ $# -eq 0 ] || cat 2>/dev/null\nexit 0\n"
	if err := testkit.WriteProgram(program, []byte(script), 0o700); err != nil {
		return "", err
	}
	return s.Work, errors.Join(os.WriteFile(filepath.Join(s.Work, "a.txt"), []byte("two\n"), 0o600),
		write(func(args ...string) error { return runGit(s.Work, args...) }, program))
}

func gitHooks(s stage) (string, error) {
	return gitAttack(s, func(git func(...string) error, program string) error {
		hooks := filepath.Join(s.Work, ".hooks")
		errs := []error{os.Mkdir(hooks, 0o700), git("config", "core.hooksPath", hooks)}
		names := "applypatch-msg pre-commit prepare-commit-msg commit-msg post-commit post-checkout pre-merge-commit post-merge post-index-change reference-transaction pre-rebase post-rewrite"
		for _, name := range strings.Fields(names) {
			errs = append(errs, os.Symlink(program, filepath.Join(hooks, name)))
		}
		return errors.Join(errs...)
	})
}

func gitMonitor(s stage) (string, error) {
	return gitAttack(s, func(git func(...string) error, program string) error { return git("config", "core.fsmonitor", program) })
}

func gitFilter(s stage) (string, error) {
	return gitAttack(s, func(git func(...string) error, program string) error {
		return errors.Join(os.WriteFile(filepath.Join(s.Work, ".gitattributes"), []byte("* filter=own\n"), 0o600),
			git("config", "filter.own.clean", program+" x"), git("config", "filter.own.smudge", program+" x"), git("config", "filter.own.process", program))
	})
}

func gitCompare(s stage) (string, error) {
	return gitAttack(s, func(git func(...string) error, program string) error {
		return errors.Join(os.WriteFile(filepath.Join(s.Work, ".gitattributes"), []byte("* diff=own\n"), 0o600), git("config", "diff.external", program), git("config", "diff.own.textconv", program+" x"), git("config", "diff.own.command", program))
	})
}

func gitMerge(s stage) (string, error) {
	return gitAttack(s, func(git func(...string) error, program string) error {
		return errors.Join(os.WriteFile(filepath.Join(s.Work, ".gitattributes"), []byte("* merge=own\n"), 0o600), git("config", "merge.own.driver", program), git("config", "merge.default", "own"))
	})
}

// gitSubmodule lays a submodule whose own settings name a filter.
func gitSubmodule(s stage) (string, error) {
	return gitAttack(s, func(git func(...string) error, program string) error {
		inner := filepath.Join(s.Work, "sub")
		errs := []error{os.Mkdir(inner, 0o700), runGit(inner, "init", "-q"), os.WriteFile(filepath.Join(inner, "a"), []byte("a\n"), 0o600)}
		errs = append(errs, runGit(inner, "add", "a"), runGit(inner, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "first"),
			os.WriteFile(filepath.Join(inner, ".gitattributes"), []byte("* filter=own\n"), 0o600),
			runGit(inner, "config", "filter.own.clean", program+" x"), os.WriteFile(filepath.Join(inner, "a"), []byte("b\n"), 0o600),
			os.WriteFile(filepath.Join(s.Work, ".gitmodules"), []byte("[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n"), 0o600),
			git("config", "submodule.sub.update", "!"+program), git("config", "submodule.sub.ignore", "none"), git("add", "sub", ".gitmodules"))
		return errors.Join(errs...)
	})
}

func gitPrograms(s stage) (string, error) {
	return gitAttack(s, func(git func(...string) error, program string) error {
		var errs []error
		for _, name := range strings.Fields("core.pager core.editor core.sshCommand core.askPass gpg.program credential.helper sequence.editor uploadpack.packObjectsHook") {
			errs = append(errs, git("config", name, program))
		}
		return errors.Join(append(errs, git("config", "log.showSignature", "true"))...)
	})
}

// gitRemote names the program of a remote that git asks for contents which are not there,
// and removes the contents of a file.
func gitRemote(s stage) (string, error) {
	return gitAttack(s, func(git func(...string) error, program string) error {
		ask := func(args ...string) (string, error) {
			cmd := exec.Command("git", args...)
			cmd.Dir = s.Work
			output, err := cmd.Output()
			return strings.TrimSpace(string(output)), err
		}
		folder, folderErr := ask("rev-parse", "--path-format=absolute", "--git-common-dir")
		object, objectErr := ask("rev-parse", "HEAD:a.txt")
		if err := errors.Join(folderErr, objectErr); err != nil {
			return err
		}
		// The program ends at once: git and it would wait for each other.
		errs := []error{testkit.WriteProgram(program, []byte("#!/bin/sh\n: > '"+filepath.Join(s.Outside, filepath.Base(ownFolder(s)), "started")+"'\nexit 1\n"), 0o700)}
		for name, value := range map[string]string{
			"core.repositoryformatversion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": s.Work, "remote.origin.uploadpack": program,
		} {
			errs = append(errs, git("config", name, value))
		}
		return errors.Join(append(errs, os.Remove(filepath.Join(folder, "objects", object[:2], object[2:])))...)
	})
}
