package check

import "maps"

// Severity is the effect of a finding on the report's exit code: an error makes it fail,
// a warning is only shown.
type Severity string

// The severities (STO-02).
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Code names a kind of finding.
type Code string

// The codes of findings. Their severity, whether `bridge doctor --fix` fixes them, and
// what to do, are in kinds.
const (
	StoreLost          Code = "store-lost"
	StoreReplaced      Code = "store-replaced"
	StoreUnmade        Code = "store-unmade"
	HomeMissing        Code = "home-missing"
	DatabaseMissing    Code = "database-missing"
	DatabaseEmpty      Code = "database-empty"
	DatabaseUnreadable Code = "database-unreadable"
	DatabaseDamaged    Code = "database-damaged"
	DatabaseReferences Code = "database-references"
	DatabaseForeign    Code = "database-foreign"
	DatabaseNewer      Code = "database-newer"
	DatabaseOlder      Code = "database-older"
	UpgradeDeferred    Code = "upgrade-deferred"
	CompatWaiting      Code = "compat-waiting"
	DatabaseVersion    Code = "database-version"
	SchemaIncomplete   Code = "schema-incomplete"
	SchemaDifferent    Code = "schema-different"
	TriggerMissing     Code = "trigger-missing"
	IndexMissing       Code = "index-missing"
	TableEmptied       Code = "table-emptied"
	ArchiveIncomplete  Code = "archive-incomplete"
	RowUnreadable      Code = "row-unreadable"
	RowNewer           Code = "row-newer"
	RowReplaced        Code = "row-replaced"
	CrossingDamaged    Code = "crossing-damaged"
	OutboxStuck        Code = "outbox-stuck"
	IndexDamaged       Code = "index-damaged"
	IndexBehind        Code = "index-behind"
	JSONUnreadable     Code = "json-unreadable"
	JSONDamaged        Code = "json-damaged"
	JSONShape          Code = "json-shape"
	JSONNewer          Code = "json-newer"
	PendingWrites      Code = "pending-writes"
	PendingDamaged     Code = "pending-damaged"
	JournalDamaged     Code = "journal-damaged"
	SecretDamaged      Code = "secret-damaged"
	NotAFile           Code = "not-a-file"
	NotAFolder         Code = "not-a-folder"
	Link               Code = "symlink"
	OpenToOthers       Code = "open-to-others"
	TempAbandoned      Code = "temp-abandoned"
	UnknownFile        Code = "unknown-file"
	LeaseStale         Code = "lease-stale"
	LeaseUnreadable    Code = "lease-unreadable"
	LockLeft           Code = "lock-left"
	LockHeld           Code = "lock-held"
	SnapshotDamaged    Code = "snapshot-damaged"
	SnapshotUnfinished Code = "snapshot-unfinished"
	TestFailed         Code = "drill-failed"
	RestoreUnfinished  Code = "restore-unfinished"
	FileUnreadable     Code = "file-unreadable"
	JobDamaged         Code = "job-damaged"
	JobContradiction   Code = "job-contradiction"
	JobUnknown         Code = "job-unknown"
	ResultMissing      Code = "result-missing"
	ResultUnsent       Code = "result-unsent"
	ResultManual       Code = "result-manual"
	RunLogMissing      Code = "run-log-missing"
	ApprovalLeft       Code = "approval-left"
	WorktreeMissing    Code = "worktree-missing"
	ProcessesLeft      Code = "processes-left"
	RegistryLockLeft   Code = "registry-lock-left"
	ProgramGone        Code = "program-gone"
	SettingUnknown     Code = "setting-unknown"
)

// Kind holds the properties of all findings of one code.
type Kind struct {
	Severity Severity
	Fixable  bool   // by `bridge doctor --fix`
	Hint     string // what to do, for people
}

const restoreHint = "restore a snapshot with `bridge doctor --restore <snapshot>`; without one, keep a copy of the file and ask for help before you change it"

// Kinds returns the documented list of codes.
func Kinds() map[Code]Kind {
	kinds := jobKinds()
	maps.Copy(kinds, storeKinds())
	return kinds
}

// jobKinds returns the kinds of delegated jobs.
func jobKinds() map[Code]Kind {
	return map[Code]Kind{
		JobDamaged:       {Error, false, "everything else goes on; a snapshot from before has it whole, or mend it by hand"},
		JobContradiction: {Warning, false, "nothing is lost: look at the job's result and its log; a snapshot from before the contradiction has both as they were"},
		JobUnknown:       {Warning, false, "nothing uses it: a snapshot may have the job in its jobs.json; move it out of the home when you do not need it. Of a worktree look first at what is in it"},
		ResultMissing:    {Error, false, "the job's session can be continued by message_subagent; its log may tell what it did, and a snapshot from before has the result"},
		ResultUnsent:     {Warning, false, "nothing to do: a broker with jobs sends it; start one where none runs"},
		ResultManual:     {Warning, false, "read it with a program of your choice: it is one JSON object, the answer is its member result"},
		RunLogMissing:    {Warning, false, "nothing to do: what came of these runs is in their envelopes. No snapshot holds logs"},
		ApprovalLeft:     {Warning, false, "nothing to do: no answer reaches anybody any more, and the record is kept"},
		WorktreeMissing:  {Warning, false, "look for its branch in the repository; what was not committed there is where the folder went"},
		ProcessesLeft:    {Warning, true, "a broker with jobs ends them, and `bridge doctor --fix` does too"},
		RegistryLockLeft: {Warning, false, "stop every program that shares this home, then remove it by hand"},
	}
}

func storeKinds() map[Code]Kind {
	return map[Code]Kind{
		StoreLost:          {Error, false, "type the command of your choice: until then no broker serves this home, and nothing takes the store's place"},
		StoreReplaced:      {Warning, false, "nothing to do: `bridge doctor --restore` brings a snapshot from before back; move the set out of the home when you need it no more"},
		StoreUnmade:        {Error, false, "nothing is lost: `bridge serve` makes it, or says what is in the way, such as a full disk"},
		HomeMissing:        {Error, false, "name the right folder with --home or BRIDGE_HOME; a broker makes a new home, and `bridge doctor --restore <snapshot>` one from a snapshot elsewhere"},
		DatabaseMissing:    {Error, false, restoreHint},
		DatabaseEmpty:      {Error, false, restoreHint},
		DatabaseUnreadable: {Error, false, restoreHint},
		DatabaseDamaged:    {Error, false, restoreHint},
		DatabaseReferences: {Error, false, restoreHint},
		DatabaseForeign:    {Error, false, "move the file that does not belong there away, then put the right one back or restore a snapshot"},
		DatabaseNewer:      {Error, false, "use the newer Bridge that wrote it, or restore a snapshot from before"},
		DatabaseOlder:      {Warning, false, "nothing to do: it is copied and upgraded when the broker next starts"},
		UpgradeDeferred:    {Warning, false, "everything works meanwhile, but mail does not expire and nothing is archived: stop the older programs, then restart the broker"},
		CompatWaiting:      {Warning, false, "nothing to do: the next broker brings what it holds into the store and keeps the file"},
		DatabaseVersion:    {Error, false, restoreHint},
		SchemaIncomplete:   {Error, false, "what it held is in no place of this store: " + restoreHint + ". Until then what belongs in a table that is gone is kept in compat.db"},
		SchemaDifferent:    {Warning, false, "Bridge only keeps what is in this table: nothing to do where another program made it; else a snapshot from before has it whole"},
		TriggerMissing:     {Error, false, "start the broker, which rebuilds it; meanwhile any program may have changed what it protects: compare with a snapshot"},
		IndexMissing:       {Warning, false, "nothing is lost: the broker, or for the archive the next archiving, rebuilds it"},
		TableEmptied:       {Error, false, restoreHint},
		ArchiveIncomplete:  {Warning, false, "the messages in it are whole; the next archiving makes what is lacking, and what it held comes back with a snapshot only"},
		RowUnreadable:      {Error, false, "everything else goes on, and the row is kept as it is; a snapshot from before has it whole. The topic has a decision in force again when one is recorded anew"},
		RowReplaced:        {Warning, false, "nothing to do: a later decision of the same topic holds, and the row is kept as it is"},
		RowNewer:           {Warning, false, "nothing is lost: the newer Bridge that wrote it reads it"},
		CrossingDamaged:    {Error, false, "everything else goes on, and the row is kept as it is: send such a message again; a snapshot from before has it whole"},
		OutboxStuck:        {Warning, false, "see `bridge network`: whether that PC is reached, and on it whether it allows messages. What waits goes by itself then, and its senders see that it waits"},
		IndexDamaged:       {Warning, true, "nothing is lost: `bridge doctor --fix` moves the search index to archive/orphaned, and the next broker makes a new one from the messages"},
		IndexBehind:        {Warning, false, "nothing to do: the broker catches up by itself; until then the search by words misses the newest"},
		JSONUnreadable:     {Error, false, "make the file readable for you"},
		JSONDamaged:        {Error, false, "mend the file by hand, or restore a snapshot"},
		JSONShape:          {Error, false, "mend the file by hand, or restore a snapshot"},
		JSONNewer:          {Error, false, "use the newer Bridge that wrote it"},
		PendingWrites:      {Warning, false, "nothing is lost: stop the older programs, then restart the broker, which writes them"},
		PendingDamaged:     {Error, false, "mend the file by hand, or move it away: what it says is then not written, and what comes after it is"},
		JournalDamaged:     {Error, false, "move the receipt away by hand: messages that it names may be shown once more"},
		SecretDamaged:      {Error, false, "stop all bridge processes and remove the file: a new secret is made"},
		NotAFile:           {Error, false, "put a regular file there: of a symbolic link the file itself that it leads to; move anything else away"},
		NotAFolder:         {Error, false, "move it away: Bridge makes the folder that belongs there when it needs it"},
		Link:               {Warning, false, "put the file itself there: links are not followed by snapshots, and a store refuses them"},
		OpenToOthers:       {Warning, false, "take the rights of others away: chmod go= on it"},
		TempAbandoned:      {Warning, true, "`bridge doctor --fix` moves it to archive/orphaned, byte for byte"},
		UnknownFile:        {Warning, false, "nothing of Bridge's: move it out of the home if you do not know it either"},
		LeaseStale:         {Warning, true, "its process is gone; the next broker clears it, and `bridge doctor --fix` does too"},
		LeaseUnreadable:    {Warning, false, "stop every bridge process, then remove it by hand"},
		LockLeft:           {Error, false, "stop every bridge process, remove the file by hand and do the maintenance again"},
		LockHeld:           {Warning, false, "nothing to do: no broker starts until that work has ended"},
		SnapshotDamaged:    {Error, false, "do not rely on it: make a new one with `bridge doctor --backup`, then move it away"},
		SnapshotUnfinished: {Warning, false, "a failed attempt, kept as it is; move it away when you do not need it"},
		TestFailed:         {Error, false, "do not rely on this set: mend what the drill met and prove the set again with `bridge doctor --drill <set>`, or make a new one and move this one away"},
		RestoreUnfinished:  {Error, false, "do the same restore or merge again, or `bridge serve --new-store`; what it displaced is in the recovery set"},
		FileUnreadable:     {Warning, false, "make it readable for you"},
		SettingUnknown:     {Warning, false, "Bridge keeps it and does not use it: mend its name in the file, or take it out with `bridge config unset`"},
		ProgramGone:        {Warning, false, "the agent's sessions get no mail: `bridge install` connects it to the program that you run now"},
	}
}

// Hint returns what to do about a finding of this code.
func (c Code) Hint() string { return Kinds()[c].Hint }
