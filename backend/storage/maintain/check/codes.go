package check

import (
	"maps"
	"strings"
)

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

// The codes of findings. Kinds has their severity, whether `bridge doctor --fix` fixes
// them, what they mean and what to do.
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
	VariableInvalid    Code = "variable-invalid"
	VariableUnknown    Code = "variable-unknown"
)

// Kind holds the properties of all findings of one code.
type Kind struct {
	Severity Severity
	Fixable  bool   // by `bridge doctor --fix`
	Means    string // what it means for the owner
	Do       string // what to do; {restore} stands for the command that restores the newest snapshot
}

// restoreIt is what to do about damage that only a snapshot mends.
const restoreIt = "Restore a snapshot with {restore}."

// Kinds returns the documented list of codes.
func Kinds() map[Code]Kind {
	kinds := jobKinds()
	maps.Copy(kinds, databaseKinds())
	maps.Copy(kinds, fileKinds())
	return kinds
}

// jobKinds returns the kinds of delegated jobs.
func jobKinds() map[Code]Kind {
	return map[Code]Kind{
		JobDamaged:       {Error, false, "Everything else goes on.", "Mend the file by hand. A snapshot from before has the job whole."},
		JobContradiction: {Warning, false, "Nothing is lost.", "Look at the job's result and its log. A snapshot from before the contradiction has both as they were."},
		JobUnknown:       {Warning, false, "Nothing uses it.", "Move it out of the home when you do not need it. Of a worktree look first at what is in it."},
		ResultMissing:    {Error, false, "The answer of the job is not there.", "Continue the job's session with message_subagent, or read its log."},
		ResultUnsent:     {Warning, false, "The session that gave the job does not have its result yet.", "Nothing. A broker with jobs sends it; start one where none runs."},
		ResultManual:     {Warning, false, "It is too large to be read by itself. It is kept whole.", "Read it with a program of your choice: it is one JSON object, and the answer is its member result."},
		RunLogMissing:    {Warning, false, "What came of these runs is kept. No snapshot holds logs.", "Nothing."},
		ApprovalLeft:     {Warning, false, "No answer is delivered any more. Bridge keeps the record.", "Nothing."},
		WorktreeMissing:  {Warning, false, "What was not committed there is where the folder went.", "Look for its branch in the repository."},
		ProcessesLeft:    {Warning, true, "Programs of a job run on without it.", "Run `bridge doctor --fix`, or start a broker with jobs: both end them."},
		RegistryLockLeft: {Warning, false, "Older programs wait for it.", "Stop every program that shares this home, then remove it by hand."},
	}
}

// databaseKinds returns the kinds of databases and their rows.
func databaseKinds() map[Code]Kind {
	return map[Code]Kind{
		StoreLost:          {Error, false, "No broker serves this home, and nothing takes the store's place.", "Type the command of your choice."},
		StoreReplaced:      {Warning, false, "An empty store took the place of a lost one. What was left of it is kept.", "Nothing. `bridge doctor --restore latest` brings the newest snapshot back."},
		StoreUnmade:        {Error, false, "Nothing is lost: nothing was stored yet.", "Run `bridge serve`: it makes the store, or says what is in the way, such as a full disk."},
		HomeMissing:        {Error, false, "There is nothing to check.", "Name the right folder with --home or BRIDGE_HOME. `bridge serve` makes a new home."},
		DatabaseMissing:    {Error, false, "What this file held is not there.", restoreIt},
		DatabaseEmpty:      {Error, false, "What this file held is not there.", restoreIt},
		DatabaseUnreadable: {Error, false, "Bridge cannot use this file.", restoreIt},
		DatabaseDamaged:    {Error, false, "Parts of this file cannot be read. What needs them fails.", restoreIt},
		DatabaseReferences: {Error, false, "Rows of this file name other rows that are not there.", restoreIt},
		DatabaseForeign:    {Error, false, "Bridge does not use this file, and what belongs in its place is missing.", "Move this file away. Then put the right one back, or restore a snapshot with {restore}."},
		DatabaseNewer:      {Error, false, "This Bridge leaves the file alone.", "Use the newer Bridge that wrote it."},
		DatabaseOlder:      {Warning, false, "Nothing is lost.", "Nothing. The broker copies and upgrades it when it next starts."},
		UpgradeDeferred:    {Warning, false, "Everything works meanwhile, but mail does not expire and nothing is archived.", "Stop the older programs, then restart the broker."},
		CompatWaiting:      {Warning, false, "Nothing is lost.", "Nothing. The next broker brings what it holds into the store, and keeps the file."},
		DatabaseVersion:    {Error, false, "Bridge cannot tell what this file holds.", restoreIt},
		SchemaIncomplete:   {Error, false, "What the missing part held is in no place of this store. New rows for it are kept in compat.db.", restoreIt},
		SchemaDifferent:    {Warning, false, "Bridge keeps what is in this table and does not use it.", "Nothing, if another program made it. Else a snapshot from before has it whole."},
		TriggerMissing:     {Error, false, "Until it is there again, other programs can change what it protects.", "Start the broker: it rebuilds the trigger. Then compare with a snapshot."},
		IndexMissing:       {Warning, false, "Nothing is lost. Reading is slower.", "Nothing. The broker rebuilds it, or the next archiving does for the archive."},
		TableEmptied:       {Error, false, "Rows that a newer snapshot counts are gone.", restoreIt},
		ArchiveIncomplete:  {Warning, false, "The messages in it are whole.", "Run `bridge doctor --archive`: it makes what is missing. What that held comes back with a snapshot only."},
		RowUnreadable:      {Error, false, "Everything else goes on, and Bridge keeps the row as it is.", "Record the decision again. A snapshot from before has the row whole."},
		RowReplaced:        {Warning, false, "A later decision of the same topic holds. Bridge keeps the row as it is.", "Nothing."},
		RowNewer:           {Warning, false, "Nothing is lost: the newer Bridge that wrote it can read it.", "Use the newer Bridge to see it."},
		CrossingDamaged:    {Error, false, "Everything else goes on, and Bridge keeps the row as it is.", "Send such a message again. A snapshot from before has the row whole."},
		OutboxStuck:        {Warning, false, "The messages wait here, and their senders see that.", "Look at `bridge network`: whether that PC is reached, and whether it allows messages. Then they go by themselves."},
		IndexDamaged:       {Warning, true, "Nothing is lost, but the search by words fails.", "Run `bridge doctor --fix`: it moves the index away, and the next broker makes a new one."},
		IndexBehind:        {Warning, false, "The search by words misses the newest messages.", "Nothing. The broker catches up by itself."},
	}
}

// fileKinds returns the kinds of all other files, and of settings.
func fileKinds() map[Code]Kind {
	return map[Code]Kind{
		JSONUnreadable:     {Error, false, "Bridge cannot use this file.", "Make the file readable for you."},
		JSONDamaged:        {Error, false, "Bridge cannot use this file.", "Mend the file by hand, or restore a snapshot with {restore}."},
		JSONShape:          {Error, false, "Bridge cannot use this part of the file.", "Mend the file by hand, or restore a snapshot with {restore}."},
		JSONNewer:          {Error, false, "This Bridge leaves the file alone.", "Use the newer Bridge that wrote it."},
		PendingWrites:      {Warning, false, "Nothing is lost.", "Stop the older programs, then restart the broker: it writes them."},
		PendingDamaged:     {Error, false, "What this file says is not written. What comes after it is.", "Mend the file by hand, or move it away."},
		JournalDamaged:     {Error, false, "Messages that it names may be shown once more.", "Move the receipt away by hand."},
		SecretDamaged:      {Error, false, "No program can sign in with it.", "Stop all processes of Bridge and remove the file: Bridge makes a new secret."},
		NotAFile:           {Error, false, "Bridge cannot use what is there.", "Put a regular file there. If it is a link, put the file itself there; move anything else away."},
		NotAFolder:         {Error, false, "Bridge cannot use what is there.", "Move it away: Bridge makes the folder when it needs it."},
		Link:               {Warning, false, "Snapshots do not follow links, and a store refuses them.", "Put the file itself there."},
		OpenToOthers:       {Warning, false, "Other users of this PC can read it.", "Take the rights of others away: chmod go= on it. Bridge does so at the next start, too."},
		TempAbandoned:      {Warning, true, "A program ended before it had written the file. The file that it meant to replace is whole.", "Run `bridge doctor --fix`: it moves the file to archive/orphaned, byte for byte."},
		UnknownFile:        {Warning, false, "Bridge does not use it.", "Move it out of the home, if you do not know it either."},
		LeaseStale:         {Warning, true, "Its process is gone. It does no harm.", "Nothing. The next broker clears it, and `bridge doctor --fix` does, too."},
		LeaseUnreadable:    {Warning, false, "It counts as a program that works here, so some maintenance is refused.", "Stop every process of Bridge, then remove it by hand."},
		LockLeft:           {Error, false, "No broker starts while the file is there.", "Stop every process of Bridge, remove the file by hand, and do the maintenance again."},
		LockHeld:           {Warning, false, "No broker starts until that work has ended.", "Nothing. Wait for its end."},
		SnapshotDamaged:    {Error, false, "You cannot rely on this snapshot.", "Make a new one with `bridge doctor --backup`, then move this one away."},
		SnapshotUnfinished: {Warning, false, "A backup was interrupted. The other snapshots are whole.", "Move it away when you do not need it."},
		TestFailed:         {Error, false, "You cannot rely on this set.", "Mend what the drill met and prove the set again with `bridge doctor --drill`, or make a new one with `bridge doctor --backup`."},
		RestoreUnfinished:  {Error, false, "Some files are those of before, and some are restored. What was replaced is in the recovery set.", "Do the same restore or merge again, or run `bridge serve --new-store`."},
		FileUnreadable:     {Warning, false, "Bridge cannot check it or use it.", "Make it readable for you."},
		ProgramGone:        {Warning, false, "The agent's sessions get no mail.", "Run `bridge install`: it connects the agent to the program that you run now."},
		SettingUnknown:     {Warning, false, "Bridge keeps it and does not use it.", "Mend its name in the file, or take it out with `bridge config unset`."},
		VariableInvalid:    {Warning, false, "Bridge uses the setting or the default instead.", "Change its value where you set it. `bridge help environment` lists the variables."},
		VariableUnknown:    {Warning, false, "Bridge does not read it, so its value has no effect.", "Mend its name where you set it. `bridge help environment` lists the variables."},
	}
}

// anySnapshot is the command that restores a snapshot, where no snapshot is known.
const anySnapshot = "`bridge doctor --restore latest`"

// Hint returns what a finding of this code means, and what to do about it.
func (c Code) Hint() string {
	kind := Kinds()[c]
	return kind.Means + " " + strings.ReplaceAll(kind.Do, "{restore}", anySnapshot)
}

// Advice returns what a finding means, and what to do about it in this home: with the
// newest snapshot's name, or without any advice to restore if there is none.
func (r Report) Advice(code Code) (means, do string) {
	kind := Kinds()[code]
	newest := r.newestSnapshot()
	switch {
	case !strings.Contains(kind.Do, "{restore}"):
		return kind.Means, kind.Do
	case newest != "":
		return kind.Means, strings.ReplaceAll(kind.Do, "{restore}", "`bridge doctor --restore "+newest+"`")
	case kind.Do == restoreIt:
		return kind.Means, noSnapshot
	default:
		return kind.Means, strings.ReplaceAll(kind.Do, "{restore}", anySnapshot)
	}
}
