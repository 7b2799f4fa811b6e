package runner

import (
	"testing"

	"bridge/backend/core/job"
)

// What a job asks is told as its agent says it: no white space goes.
func TestRWM_18_ARequestOfAJobIsNotTrimmed(t *testing.T) {
	const said = " \n ls \t\n"
	for _, tt := range []struct {
		question job.Question
		want     string
	}{
		{job.Question{Kind: job.QuestionCommand, Subject: said}, said},
		{job.Question{Kind: job.QuestionEdit, Subject: said, Diff: said}, said + "\n" + said},
		{job.Question{Kind: job.QuestionEdit, Diff: said}, said},
	} {
		if got := detailOf(tt.question); got != tt.want {
			t.Errorf("%+v is told as %q, want %q", tt.question, got, tt.want)
		}
	}
}
