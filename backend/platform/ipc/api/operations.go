package api

import (
	"context"
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/decision"
	"bridge/backend/core/job"
	"bridge/backend/core/needs"
	"bridge/backend/core/proof"
	"bridge/backend/core/question"
	"bridge/backend/core/rule"
	"bridge/backend/core/session"
)

// The table of the operations: name, argument and answer types, and the roles that
// may call each (JOB-11). An operation outside the table is closed to every role.
var (
	// The life of a session.
	OpRegister = define[Register, Registered]("register", RoleSession, RolePlugin)
	OpLeave    = define[Leave, Empty]("leave", RolePlugin)
	OpHook     = define[session.HookCall, session.HookReply]("hook", RoleHook, RolePlugin)
	OpWakeWait = define[WakeWait, WakeReply]("wake_wait", RoleHook)
	OpTake     = define[Caller, Inbox]("take", RoleSession)
	OpAck      = define[Ack, Empty]("confirm", RoleSession, RolePlugin, RoleHook)
	OpNack     = define[Nack, Empty]("return", RoleSession, RolePlugin, RoleHook)

	// The mod of Claude Code.
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

	// Questions of sessions to the owner.
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
	OpTakeBackRule = define[RuleArgs, RuleRevoked]("take_back_rule", RoleOwner)

	// Exchanges of two sessions.
	OpExchange = define[ExchangeArgs, Exchange]("exchange", RoleOwner)

	// What `bridge prove` found.
	OpRecordProof = define[proof.Proof, Empty]("record_proof", RoleOwner)

	// The owner's decisions.
	OpPinDecision      = define[DecideArgs, DecideResult]("pin_decision", RoleOwner)
	OpWithdrawDecision = define[WithdrawDecisionArgs, DecideResult]("withdraw_decision", RoleOwner)

	// Other PCs.
	OpInvite     = define[Empty, Invited]("invite", RoleOwner)
	OpInvitation = define[InvitationArgs, InvitationEnded]("invitation", RoleOwner)
	OpLink       = define[LinkArgs, PCName]("link", RoleOwner)
	OpUnlink     = define[UnlinkArgs, Empty]("unlink", RoleOwner)
	OpJoinTeam   = define[LinkArgs, Joined]("join_team", RoleOwner)
	OpJoinOwn    = define[JoinExternalArgs, Joined]("join_own_server", RoleOwner)
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

	// What Bridge puts into the sessions' contexts.
	OpCostReport = define[CostReport, Empty]("cost_report", RoleSession, RoleHook)
	OpCosts      = define[Empty, Costs]("costs", RoleOwner, RoleDashboard)

	// The owner's programs.
	OpStatus    = define[Empty, Status]("status", RoleOwner, RoleDashboard)
	OpNeeds     = define[Empty, needs.Facts]("needs", RoleOwner, RoleDashboard)
	OpSubscribe = define[Empty, Empty]("subscribe", RoleDashboard)
	OpRetire    = define[Empty, Empty]("retire", RoleOwner)
	OpShow      = define[Empty, Empty]("show", RoleOwner) // only the desktop app serves it, on a separate endpoint
)

// quick holds the operations that wait only for one commit. If no other request is
// pending, the broker serves them on the goroutine that reads the connection:
// another goroutine would cost more than the work besides the commit. Later
// requests wait meanwhile, even a cancellation, which could not stop a commit
// anyway.
var quick = map[string]bool{OpSend.Name: true, OpAck.Name: true}

// IsQuick reports whether op is in quick.
func IsQuick(op string) bool { return quick[op] }

// openToJobs holds the operations that a delegated job's session may call, subject
// to the handler's own checks (JOB-11, JOB-12). All others are closed to it in any
// role.
var openToJobs = map[string]bool{
	OpRegister.Name: true, OpAck.Name: true, OpNack.Name: true,
	OpPeers.Name: true, OpSend.Name: true, OpSent.Name: true, OpInbox.Name: true, OpWait.Name: true,
	OpDecisions.Name: true, OpSearch.Name: true,
	OpJobProgress.Name: true, OpSpawn.Name: true, OpJobs.Name: true, OpJobResult.Name: true, OpJobMessage.Name: true,
	OpJobCancel.Name: true, OpCostReport.Name: true,
}

// CheckJob fails with Denied if a delegated job may not call the operation.
func (r Row) CheckJob(job string) error {
	if openToJobs[r.Name] {
		return nil
	}
	return bridge.Errorf(bridge.Denied, "%q may not be called by a delegated job, such as %s", r.Name, job)
}

// Empty is the arguments or the answer of an operation without any.
type Empty struct{}

// Row is one operation of the table.
type Row struct {
	Name  string
	roles []Role
}

// CheckCaller fails with Denied if the role may not call the operation.
func (r Row) CheckCaller(role Role) error {
	if !slices.Contains(r.roles, role) {
		return bridge.Errorf(bridge.Denied, "%q may not be called by a connection of the role %q", r.Name, role)
	}
	return nil
}

// Op is an operation with the types of its arguments and answer.
type Op[Args, Answer any] struct{ Row }

// Link sends the arguments of an operation to the other end and decodes the answer
// into answer, a pointer. If the connection ends first, it fails with Unavailable,
// and the execution of the operation is unknown.
type Link interface {
	Call(ctx context.Context, op string, args, answer any) error
}

// Call executes the operation at the other end of link. It fails as Link.Call does.
func (o Op[Args, Answer]) Call(ctx context.Context, link Link, args Args) (Answer, error) {
	var answer Answer
	err := link.Call(ctx, o.Name, args, &answer)
	return answer, err
}

// rows is the table as a list. Only define writes it, during the initialization of
// the package.
var rows []Row

func define[Args, Answer any](name string, roles ...Role) Op[Args, Answer] {
	row := Row{Name: name, roles: roles}
	rows = append(rows, row)
	return Op[Args, Answer]{Row: row}
}

// NetworkOperations returns the operations on other PCs and on file transfers.
func NetworkOperations() []Row {
	return []Row{
		OpInvite.Row, OpInvitation.Row, OpLink.Row, OpUnlink.Row, OpJoinTeam.Row, OpJoinOwn.Row, OpIdentify.Row, OpLeaveTeam.Row,
		OpNetwork.Row, OpNetworkLists.Row, OpSendFiles.Row, OpTransfer.Row, OpTransfers.Row, OpCancelTransfer.Row,
	}
}

// DelegatedOperations returns the operations on delegated jobs and their runners.
func DelegatedOperations() []Row {
	return []Row{
		OpRunnerHello.Row, OpRunnerReport.Row, OpRunnerWait.Row, OpSpawn.Row, OpJobs.Row, OpJobResult.Row, OpJobMessage.Row,
		OpJobCancel.Row, OpHandOff.Row, OpJobProgress.Row, OpJobSlots.Row, OpJobFinish.Row, OpModels.Row, OpUsage.Row,
		OpRuns.Row, OpRunLog.Row,
	}
}

// Operations returns the whole table.
func Operations() []Row { return slices.Clone(rows) }

// Calls holds the operations as methods, grouped by noun. Each fails with Denied if the role
// of the connection may not call it, and with Unavailable if the connection ends first.
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
	CostCalls
}

// NewCalls returns the operations that link can call at its other end.
func NewCalls(link Link) Calls {
	return Calls{
		SessionCalls{link}, MessageCalls{link}, DecisionCalls{link}, HistoryCalls{link}, HookCalls{link}, ModCalls{link}, RunnerCalls{link}, JobCalls{link}, QuestionCalls{link}, PromptCalls{link}, OwnerCalls{link}, NetworkCalls{link}, FileCalls{link}, CostCalls{link},
	}
}
