package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"bridge/backend/platform/ipc"
)

// mirrors measures what it costs a PC to have jobs at work on many paired ones: ten
// links, and five jobs behind each, all quiet.
func (l *lab) mirrors(ctx context.Context) (err error) {
	const links, jobs = 10, 5
	repository := filepath.Join(l.dir, "repository")
	if err := errors.Join(os.MkdirAll(repository, 0o700), exec.CommandContext(ctx, "git", "init", "-q", repository).Run()); err != nil {
		return err
	}
	laptop, err := l.delegating(ctx, "away", map[string]any{"enabled": true, "name": "laptop", "port": 0})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, laptop.stop()) }()
	defer laptop.boss.close()
	ipc.Pause(ctx, 2*time.Second) // what its start costs is over
	alone := resident(laptop.cmd.Process.Pid)
	var desks []*delegation
	defer func() {
		for _, desk := range desks {
			err = errors.Join(err, desk.stop())
		}
	}()
	for i := range links {
		desk, err := l.deskOf(ctx, laptop, fmt.Sprintf("desk-%d", i), repository)
		if err != nil {
			return err
		}
		desks = append(desks, desk)
	}
	gate, err := laptop.giveAll(ctx, desks, repository, jobs)
	if err != nil {
		return err
	}
	ipc.Pause(ctx, 5*time.Second) // what was asked for at the start is here
	watched := 30 * time.Second
	if l.quick {
		watched = 10 * time.Second
	}
	broker := []int{laptop.cmd.Process.Pid}
	used := spent(broker)
	ipc.Pause(ctx, watched)
	share := 100 * (spent(broker) - used).Seconds() / watched.Seconds()
	more := resident(laptop.cmd.Process.Pid) - alone
	l.add(row{what: "10 links with 50 quiet jobs there: processor", measured: fmt.Sprintf("%.2f %% of a core", share), value: share, goal: "< 2 %", bound: 2})
	l.add(row{what: "10 links with 50 quiet jobs there: memory", measured: fmt.Sprintf("%.1f MiB more", more), value: more, goal: "<= 25 MiB", bound: 25})
	if err := l.askStates(ctx, desks[0], repository, gate); err != nil {
		return err
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		return err
	}
	for _, desk := range desks {
		folders, err := filepath.Glob(filepath.Join(desk.home.Dir(), "jobs", "*"))
		if err == nil {
			err = over(ctx, folders)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deskOf starts a PC that does the laptop's jobs in a repository, and pairs the two.
func (l *lab) deskOf(ctx context.Context, laptop *delegation, name, repository string) (*delegation, error) {
	desk, err := l.working(ctx, name, map[string]any{
		"enabled": true, "name": name, "port": 0,
		"remoteJobs": map[string]any{"enabled": true, "allowRoots": []string{repository}, "agents": []string{"claude"}, "allowPeers": []string{"laptop", "probe"}},
	})
	if err != nil {
		return nil, err
	}
	inviter, err := desk.owner(ctx)
	if err != nil {
		return nil, errors.Join(err, desk.stop())
	}
	joiner, err := laptop.owner(ctx)
	if err == nil {
		err = errors.Join(pair(ctx, inviter, joiner), linked(ctx, inviter))
	}
	if err != nil {
		return nil, errors.Join(err, desk.stop())
	}
	return desk, nil
}

// giveAll has each desk do so many jobs, and returns once they are at work. They are
// quiet until the gate is a file.
func (d *delegation) giveAll(ctx context.Context, desks []*delegation, repository string, jobs int) (gate string, err error) {
	gate = d.file("gate")
	var started []string
	for _, desk := range desks {
		for range jobs {
			started = append(started, d.file("begun"))
			_, err := d.spawnClaude(map[string]any{
				"prompt": "do touch " + started[len(started)-1] + "\nwait " + gate + "\nsay done",
				"cwd":    repository, "access": "ask", "host": filepath.Base(desk.home.Dir()),
			})
			if err != nil {
				return "", err
			}
		}
	}
	for _, name := range started {
		if _, err := until(ctx, name); err != nil {
			return "", err
		}
	}
	return gate, nil
}
