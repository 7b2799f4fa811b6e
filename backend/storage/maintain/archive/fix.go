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

// Moved is a file that went into quarantine; both paths are absolute.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Fixed says what a fix did.
type Fixed struct {
	Moved []Moved `json:"moved"`
	// Ended are the folders of the jobs whose left processes were ended, absolute.
	Ended []string `json:"ended"`
}

// Fix moves what the doctor calls fixable, temporary files of writes that never
// ended and leases of processes that are gone, to a new folder under
// archive/orphaned, with the same bytes under the same relative path (STO-06). What a
// dead runner of a job left running is ended (JOB-06).
// Missing and damaged data is not its business. It refuses while writers live.
func (m Mover) Fix(ctx context.Context) (Fixed, error) {
	done := Fixed{Moved: []Moved{}, Ended: []string{}}
	if _, err := check.HasStore(ctx, m.Worker.Home); errors.Is(err, check.ErrLost) {
		return done, err // a lease or an index may be all that shows it
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

// fix mends one finding; what is moved goes below target.
func (m Mover) fix(ctx context.Context, finding check.Finding, target string, done *Fixed) error {
	from := inventory.JoinHome(m.Worker.Home.Dir(), finding.Path)
	if finding.Code == check.ProcessesLeft {
		left, err := orphans.End(ctx, from)
		if len(left) > 0 {
			done.Ended = append(done.Ended, from)
		}
		return err
	}
	if err := inventory.MakeDirs(m.Worker.Home.Dir(), "archive/orphaned/"+filepath.Base(target)+"/"+finding.Path); err != nil {
		return err
	}
	one := Moved{From: from, To: inventory.JoinHome(target, finding.Path)}
	err := m.Worker.Files().Move(one.From, one.To)
	if inventory.IsGone(err) && inventory.IsMissing(one.From) {
		return nil // its process was just ending it, as one that asked for the same lock
	}
	if err == nil {
		done.Moved = append(done.Moved, one)
	}
	return err
}
