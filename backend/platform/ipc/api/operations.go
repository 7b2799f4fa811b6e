package api

import (
	"context"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/job"
	"bridge/backend/core/needs"
	"bridge/backend/core/question"
	"bridge/backend/core/rule"
	"bridge/backend/core/session"
)

// The table of the operations: what each is called, takes and answers, and the
// roles that may call it (JOB-11). What does not stand here is open to nobody.
var (
	// A session comes, reads and goes.
	OpRegister = define[Register, Registered]("register", RoleSession, RolePlugin)
	OpLeave    = define[Leave, Empty]("leave", RolePlugin)
	OpHook     = define[session.HookCall, session.HookReply]("hook", RoleHook, RolePlugin)
	OpWakeWait = define[WakeWait, WakeReply]("wake_wait", RoleHook)
	OpTake     = define[Caller, Inbox]("take", RoleSession)
	OpAck      = define[Ack, Empty]("confirm", RoleSession, RolePlugin, RoleHook)
	OpNack     = define[Nack, Empty]("return", RoleSession, RolePlugin, RoleHook)

	// Claude's mod.
	OpMod       = define[ModWait, ModReply]("mod", RoleMod)
	OpModReport = define[ModReport, Empty]("mod_report", RoleMod)

	// A job's runner.
	OpRunnerHello  = define[RunnerHello, RunnerReported]("runner_hello", RoleRunner)
	OpRunnerReport = define[RunnerReport, RunnerReported]("runner_report", RoleRunner)
	OpRunnerWait   = define[Empty, RunnerOrders]("runner_wait", RoleRunner)

	// Delegated jobs.
	OpSpawn       = define[SpawnArgs, Spawned]("spawn", RoleSession)
	OpJobs        = define[Caller, JobsResult]("jobs", RoleSession, RoleOwner, RoleDashboard)
	OpJobResult   = define[JobArgs, JobResult]("job_result", RoleSession)
	OpJobMessage  = define[JobMessageArgs, JobMessaged]("job_message", RoleSession)
	OpJobCancel   = define[JobArgs, JobStatus]("job_cancel", RoleSession)
	OpJobProgress = define[JobProgressArgs, Empty]("job_progress", RoleSession)
	OpJobFinish   = define[JobFinishArgs, JobFinished]("job_finish", RoleOwner)
	OpRuns        = define[RunsArgs, Runs]("runs", RoleOwner)
	OpRunLog      = define[RunLogArgs, RunLog]("run_log", RoleOwner)
	OpApprove     = define[ApproveArgs, job.Approval]("approve", RoleOwner)
	OpHandOff     = define[HandoffArgs, HandedOff]("hand_off", RoleSession)
	OpJobSlots    = define[JobSlotsArgs, JobSlots]("job_slots", RoleSession)
	OpModels      = define[AgentArgs, ModelsResult]("models", RoleSession, RoleOwner)
	OpUsage       = define[AgentArgs, UsageResult]("usage", RoleSession, RoleOwner)

	// What sessions ask their owner.
	OpAskOwner         = define[AskOwnerArgs, question.Question]("ask_owner", RoleSession)
	OpQuestion         = define[QuestionArgs, question.Question]("question", RoleSession)
	OpWithdrawQuestion = define[QuestionArgs, question.Question]("withdraw_question", RoleSession)
	OpAnswerQuestion   = define[AnswerQuestionArgs, question.Question]("answer_question", RoleOwner)

	// Permission prompts of interactive sessions.
	OpPrompt       = define[PromptArgs, PromptAnswer]("prompt", RoleHook, RolePlugin)
	OpPromptReport = define[PromptReport, Empty]("prompt_report", RoleHook, RolePlugin)
	OpAway         = define[AwayArgs, Prompting]("away", RoleOwner)

	// The owner's standing rules.
	OpRules        = define[Empty, []rule.Rule]("rules", RoleOwner)
	OpTakeBackRule = define[RuleArgs, RuleTakenBack]("take_back_rule", RoleOwner)

	// The owner's decisions.
	OpPinDecision      = define[DecideArgs, DecideResult]("pin_decision", RoleOwner)
	OpWithdrawDecision = define[WithdrawDecisionArgs, DecideResult]("withdraw_decision", RoleOwner)

	// Other PCs.
	OpInvite     = define[Empty, Invited]("invite", RoleOwner)
	OpInvitation = define[InvitationArgs, InvitationEnded]("invitation", RoleOwner)
	OpLink       = define[LinkArgs, PCName]("link", RoleOwner)
	OpUnlink     = define[UnlinkArgs, Empty]("unlink", RoleOwner)
	OpJoinTeam   = define[LinkArgs, Joined]("join_team", RoleOwner)
	OpJoinOwn    = define[JoinOwnArgs, Joined]("join_own_server", RoleOwner)
	OpIdentify   = define[Empty, PCName]("identify", RoleOwner)
	OpLeaveTeam  = define[Empty, Joined]("leave_team", RoleOwner)
	OpNetwork    = define[Empty, Network]("network", RoleOwner)

	// Files between PCs.
	OpSendFiles      = define[SendFilesArgs, Transfer]("send_files", RoleOwner)
	OpTransfer       = define[TransferArgs, Transfer]("transfer", RoleOwner)
	OpTransfers      = define[Empty, Transfers]("transfers", RoleOwner)
	OpCancelTransfer = define[TransferArgs, Transfer]("cancel_transfer", RoleOwner)

	OpNetworkLists = define[Empty, NetworkLists]("network_lists", RoleOwner)

	// The tools of a session.
	OpPeers     = define[Caller, PeersResult]("peers", RoleSession)
	OpSend      = define[SendArgs, SendResult]("send", RoleSession, RoleOwner)
	OpSent      = define[SentArgs, Sent]("send_status", RoleSession)
	OpInbox     = define[InboxArgs, Inbox]("inbox", RoleSession)
	OpWait      = define[WaitArgs, WaitResult]("wait", RoleSession)
	OpDecide    = define[DecideArgs, DecideResult]("decide", RoleSession)
	OpDecisions = define[DecisionsArgs, []decision.Revision]("decisions", RoleSession)
	OpSearch    = define[SearchArgs, SearchResult]("search_history", RoleSession)
	OpAutoWake  = define[AutoWakeArgs, Empty]("auto_wake", RoleSession)
	OpTicket    = define[Empty, string]("ticket", RoleSession, RoleOwner, RoleDashboard)
	OpEntry     = define[Empty, string]("entry", RoleOwner, RoleDashboard)
	OpLaunch    = define[LaunchArgs, string]("launch", RoleOwner, RoleDashboard)

	// The owner's programs.
	OpStatus    = define[Empty, Status]("status", RoleOwner, RoleDashboard)
	OpNeeds     = define[Empty, needs.Facts]("needs", RoleOwner, RoleDashboard)
	OpSubscribe = define[Empty, Empty]("subscribe", RoleDashboard)
	OpRetire    = define[Empty, Empty]("retire", RoleOwner)
	OpShow      = define[Empty, Empty]("show", RoleOwner) // the desktop app serves it, on an endpoint of its own
)

// quick are the operations that wait for one commit and nothing else. Where no
// other request has come, the broker serves them on the goroutine that reads the
// connection: handing them to another costs more than what they do beside the
// commit. What comes meanwhile waits for it, a cancellation too, which could not
// end a commit.
var quick = map[string]bool{OpSend.Name: true, OpAck.Name: true}

// IsQuick reports whether an operation is one of those.
func IsQuick(op string) bool { return quick[op] }

// openToJobs are the operations that a delegated job's own session may call, as far as
// whoever serves them lets it (JOB-11, JOB-12). All others are closed to it, whatever
// its connection says to be.
var openToJobs = map[string]bool{
	OpRegister.Name: true, OpAck.Name: true, OpNack.Name: true,
	OpPeers.Name: true, OpSend.Name: true, OpSent.Name: true, OpInbox.Name: true, OpWait.Name: true,
	OpDecisions.Name: true, OpSearch.Name: true,
	OpJobProgress.Name: true, OpSpawn.Name: true, OpJobs.Name: true, OpJobResult.Name: true, OpJobMessage.Name: true,
	OpJobCancel.Name: true,
}

// CheckJob refuses the operation to a delegated job that may not call it.
func (r Row) CheckJob(job string) error {
	if openToJobs[r.Name] {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "%q may not be called by a delegated job, such as %s", r.Name, job)
}

// Empty is the arguments or the answer of an operation that has none.
type Empty struct{}

// Row is one operation as the table has it.
type Row struct {
	Name  string
	roles []Role
}

// CheckCaller refuses the operation to a role that may not call it.
func (r Row) CheckCaller(role Role) error {
	if !slices.Contains(r.roles, role) {
		return bridge.Errorf(bridge.Denied, "%q may not be called by a connection of the role %q", r.Name, role)
	}
	return nil
}

// Op is an operation with the types of its arguments and its answer.
type Op[Args, Answer any] struct{ Row }

// Link brings the arguments of an operation to the other end and reads what comes
// back into answer, a pointer. An answer that never came because the connection
// ended has code Unavailable: whether the operation was carried out is then
// unknown.
type Link interface {
	Call(ctx context.Context, op string, args, answer any) error
}

// Call has the operation carried out at the other end of link.
func (o Op[Args, Answer]) Call(ctx context.Context, link Link, args Args) (Answer, error) {
	var answer Answer
	err := link.Call(ctx, o.Name, args, &answer)
	return answer, err
}

// rows is the table as it can be walked: written by define alone, while the package
// is initialised.
var rows []Row

func define[Args, Answer any](name string, roles ...Role) Op[Args, Answer] {
	row := Row{Name: name, roles: roles}
	rows = append(rows, row)
	return Op[Args, Answer]{Row: row}
}

// NetworkOperations are those about other PCs, and about files to and from them.
func NetworkOperations() []Row {
	return []Row{
		OpInvite.Row, OpInvitation.Row, OpLink.Row, OpUnlink.Row, OpJoinTeam.Row, OpJoinOwn.Row, OpIdentify.Row, OpLeaveTeam.Row,
		OpNetwork.Row, OpNetworkLists.Row, OpSendFiles.Row, OpTransfer.Row, OpTransfers.Row, OpCancelTransfer.Row,
	}
}

// DelegatedOperations are those about delegated jobs, of their runners too.
func DelegatedOperations() []Row {
	return []Row{
		OpRunnerHello.Row, OpRunnerReport.Row, OpRunnerWait.Row, OpSpawn.Row, OpJobs.Row, OpJobResult.Row, OpJobMessage.Row,
		OpJobCancel.Row, OpHandOff.Row, OpJobProgress.Row, OpJobSlots.Row, OpJobFinish.Row, OpModels.Row, OpUsage.Row,
		OpRuns.Row, OpRunLog.Row,
	}
}

// Operations lists the whole table.
func Operations() []Row { return slices.Clone(rows) }

// Calls are the operations as methods, a part for each noun.
type Calls struct {
	SessionCalls
	MessageCalls
	DecisionCalls
	HistoryCalls
	HookCalls
	ModCalls
	RunnerCalls
	JobCalls
	QuestionCalls
	PromptCalls
	OwnerCalls
	NetworkCalls
	FileCalls
}

// NewCalls are the operations of whoever is at the other end of link.
func NewCalls(link Link) Calls {
	return Calls{
		SessionCalls{link}, MessageCalls{link}, DecisionCalls{link}, HistoryCalls{link}, HookCalls{link}, ModCalls{link}, RunnerCalls{link}, JobCalls{link}, QuestionCalls{link}, PromptCalls{link}, OwnerCalls{link}, NetworkCalls{link}, FileCalls{link},
	}
}
