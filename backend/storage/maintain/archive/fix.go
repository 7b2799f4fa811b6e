package archive

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"bridge/backend/platform/orphans"
	"bridge/backend/storage/maintain/check"
	"bridge/backend/storage/maintain/inventory"
	"bridge/backend/storage/maintain/lease"
)

// Moved is a file that was quarantined; both paths are absolute.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Fixed reports what a fix did.
type Fixed struct {
	Moved []Moved `json:"moved"`
	// Ended are the folders of the jobs whose leftover processes were ended, absolute.
	Ended []string `json:"ended"`
}

// Fix moves what the doctor reports as fixable to a new folder under archive/orphaned:
// temporary files of unfinished writes and leases of dead processes. Bytes and relative
// paths stay the same (STO-06). It ends the processes that a job's dead runner left
// (JOB-06). It does not handle missing and damaged data. It fails while writers live.
func (m Mover) Fix(ctx context.Context) (Fixed, error) {
	done := Fixed{Moved: []Moved{}, Ended: []string{}}
	if _, err := check.HasStore(ctx, m.Worker.Home); errors.Is(err, check.ErrLost) {
		return done, err // a lease or an index may be the only evidence of it
	}
	err := m.Worker.Exclusively(lease.Fix, false, func() error {
		report, err := check.Doctor{Worker: m.Worker}.Check(ctx)
		if err != nil {
			return err
		}
		target := filepath.Join(m.Worker.Home.Orphaned(), fmt.Sprintf("%013d-%s", m.Worker.Now().UnixMilli(), uuid.NewString()))
		for _, finding := range report.Findings {
			if !finding.Fixable {
				continue
			}
			if err := m.fix(ctx, finding, target, &done); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}

// fix fixes one finding; it moves files below target.
func (m Mover) fix(ctx context.Context, finding check.Finding, target string, done *Fixed) error {
	from := inventory.JoinHome(m.Worker.Home.Dir(), finding.Path)
	if finding.Code == check.ProcessesLeft {
		remaining, err := orphans.End(ctx, from)
		if len(remaining) > 0 {
			done.Ended = append(done.Ended, from)
		}
		return err
	}
	if err := inventory.MakeDirs(m.Worker.Home.Dir(), "archive/orphaned/"+filepath.Base(target)+"/"+finding.Path); err != nil {
		return err
	}
	move := Moved{From: from, To: inventory.JoinHome(target, finding.Path)}
	err := m.Worker.Files().Move(move.From, move.To)
	if inventory.IsGone(err) && inventory.IsMissing(move.From) {
		return nil // its process was just removing it, such as one that requested the same lock
	}
	if err == nil {
		done.Moved = append(done.Moved, move)
	}
	return err
}
