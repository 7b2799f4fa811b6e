package prove

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"bridge/backend/agent/prove/scripted"
	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
	"bridge/backend/core/job/runs"
	"bridge/backend/platform/ipc/api"
)

// What the job's two runs say, and the file that the first one makes once it may.
const (
	jobFile   = "allowed-for-the-job"
	jobResult = "bridge-prove-job-result"
)

// job gives the agent a job, allows what it asks for, cancels it and continues it. The
// session that gave it should get each of the two results once.
func (w *walk) job(ctx context.Context) *fault {
	name, wrong := w.spawn(ctx)
	if wrong != nil {
		return wrong
	}
	defer w.model.Open("job-held")
	for _, try := range []func(context.Context, string) *fault{w.approveJob, w.cancelJob, w.continueJob} {
		if wrong := try(ctx, name); wrong != nil {
			wrong.got += w.jobState(ctx, name)
			return wrong
		}
	}
	return w.results(ctx, name)
}

// spawn starts the job, and returns its name.
func (w *walk) spawn(ctx context.Context) (string, *fault) {
	const step = "start of a job"
	ctx, cancel := w.within(ctx)
	defer cancel()
	w.model.Script("job", w.run("touch "+jobFile), scripted.Say("never").After("job-held"))
	w.model.Script("job-more", scripted.Say(jobResult))
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	args, err := json.Marshal(map[string]any{"prompt": "play script:job", "title": "bridge prove", "access": job.AccessAsk})
	if err != nil {
		return "", &fault{step, "Bridge takes the job", err.Error()}
	}
	spawned, err := w.client.Spawn(ctx, api.SpawnArgs{Kind: w.Kind, Name: job.Name(w.Kind, false, random), Args: args})
	if err != nil {
		return "", &fault{step, "Bridge takes the job", err.Error()}
	}
	first, cancel := w.whileRuns(ctx, spawned.Job, 1)
	defer cancel()
	if _, err := w.request(first, "job", 0); err != nil {
		return "", &fault{step, "the job's model is asked with its task", "no request" + w.waited(first) + w.jobState(context.WithoutCancel(ctx), spawned.Job)}
	}
	return spawned.Job, nil
}

// whileRuns returns a context for one step, which ends early when the page shows the result
// of that run of the job: nothing else comes of the run then.
func (w *walk) whileRuns(ctx context.Context, name string, run int) (context.Context, context.CancelFunc) {
	ctx, cancel := w.within(ctx)
	go func() {
		if _, err := w.page.await(ctx, func(s shown) bool { return s.hasMessage(runs.ResultID(name, run)) }); err == nil {
			cancel()
		}
	}()
	return ctx, cancel
}

// waited returns how long a step has waited in vain, as the end of a sentence.
func (w *walk) waited(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return " within " + w.StepTimeout.String()
	}
	return " before it ended"
}

// approveJob allows on the page what the job asks for.
func (w *walk) approveJob(ctx context.Context, name string) *fault {
	const step = "approval of a command of the job"
	ctx, cancel := w.whileRuns(ctx, name, 1)
	defer cancel()
	if wrong := w.allow(ctx, step, "touch "+jobFile); wrong != nil {
		return wrong
	}
	if err := w.model.AtGate(ctx, "job-held"); err != nil {
		return &fault{step, "the command runs, and the job continues", "no request" + w.waited(ctx)}
	}
	if _, err := os.Stat(filepath.Join(w.home.Project(project), jobFile)); err != nil {
		return &fault{step, "the command runs", err.Error()}
	}
	return nil
}

// cancelJob cancels the job while its turn runs.
func (w *walk) cancelJob(ctx context.Context, name string) *fault {
	const step = "cancel of the job"
	ctx, cancel := w.within(ctx)
	defer cancel()
	if _, err := w.client.JobCancel(ctx, api.JobArgs{Job: name}); err != nil {
		return &fault{step, "Bridge cancels it", err.Error()}
	}
	if _, err := w.page.await(ctx, func(s shown) bool { return s.holds(cancelled(name)) }); err != nil {
		return &fault{step, "its end comes as a message", "no message within " + w.StepTimeout.String()}
	}
	return nil
}

// continueJob gives the cancelled job another task.
func (w *walk) continueJob(ctx context.Context, name string) *fault {
	const step = "continue of the job"
	ctx, cancel := w.within(ctx)
	defer cancel()
	id, err := uuid.NewV7()
	if err == nil {
		_, err = w.client.JobMessage(ctx, api.JobMessageArgs{ID: id.String(), Args: job.MessageArgs{Job: name, Message: "play script:job-more"}})
	}
	if err != nil {
		return &fault{step, "Bridge continues it", err.Error()}
	}
	next, cancel := w.whileRuns(ctx, name, 2)
	defer cancel()
	request, err := w.request(next, "job-more", 0)
	if err != nil {
		return &fault{step, "the job's model is asked with the next task", "no request" + w.waited(next)}
	}
	if request.Count("play script:job") < 2 { // each task names a script that begins so
		return &fault{step, "the job's model knows the first task", "it does not:\n" + lastLines(request.Text())}
	}
	if _, err := w.page.await(ctx, func(s shown) bool { return s.holds(jobResult) }); err != nil {
		return &fault{step, "the result comes as a message", "no message within " + w.StepTimeout.String()}
	}
	return nil
}

// results checks that the session that gave the job has each result once.
func (w *walk) results(ctx context.Context, name string) *fault {
	const step = "delivery of the result"
	ctx, cancel := w.within(ctx)
	defer cancel()
	inbox, err := w.client.Inbox(ctx, api.InboxArgs{Limit: mostMail})
	if err != nil {
		return &fault{step, "the result is in the inbox", err.Error()}
	}
	for _, text := range []string{cancelled(name), jobResult} {
		n := 0
		for _, message := range inbox.Messages {
			if strings.Contains(message.Body, text) {
				n++
			}
		}
		if n != 1 {
			return &fault{step, fmt.Sprintf("the inbox holds %q once", text), fmt.Sprintf("it holds that %s", bridge.Counted(n, "time"))}
		}
	}
	return nil
}

// mostMail is how many messages of the inbox are read.
const mostMail = 50

// cancelled returns what the message about a cancelled job says.
func cancelled(name string) string { return name + " was cancelled" }

// holds reports whether the page shows a message with the text.
func (s shown) holds(text string) bool {
	return slices.ContainsFunc(s.Messages, func(message shownMessage) bool { return strings.Contains(message.Body, text) })
}

// hasMessage reports whether the page shows the message of that id.
func (s shown) hasMessage(id string) bool {
	for _, message := range s.Messages {
		if message.ID == id {
			return true
		}
	}
	return false
}

// jobState returns what Bridge says of the job, as further lines.
func (w *walk) jobState(ctx context.Context, name string) string {
	ctx, cancel := w.within(ctx)
	defer cancel()
	result, err := w.client.JobResult(ctx, api.JobArgs{Job: name})
	if err != nil {
		return ""
	}
	text := fmt.Sprintf("\nthe job is %s", result.Status)
	for _, more := range []string{result.Step, result.Error, result.Result} {
		if more != "" {
			text += "\n" + lastLines(more)
		}
	}
	return text
}
