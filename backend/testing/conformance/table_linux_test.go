package conformance

import (
	"slices"

	"bridge/backend/core/bridge"
	"bridge/backend/core/job"
)

// class groups attacks by what they would gain.
type class string

// The classes of attacks, in the order of the documentation.
const (
	becomeOwner  class = "Become the owner"
	writeOutside class = "Write outside"
	readSecrets  class = "Read secrets"
	survive      class = "Survive"
	startProgram class = "Start programs"
	poisonState  class = "Change the state of other sessions"
	display      class = "Mislead on a terminal"
)

var classes = []class{becomeOwner, writeOutside, readSecrets, survive, startProgram, poisonState, display}

// layer names the part that refuses an attack.
type layer int

const (
	// inSandbox is the sandbox below the agent. Codex brings one of its own.
	inSandbox layer = iota
	// inBridge is the broker, the runner or the command line: it holds for every agent.
	inBridge
)

// place says where the job's owner is: on this PC, or on a paired one.
type place string

const (
	local  place = "local"
	paired place = "paired"
)

// flow names the job of the suite in which an attack is tried.
type flow int

const (
	plainFlow   flow = iota // a job that attacks and then ends
	cancelFlow              // a job that is cancelled
	deathFlow               // a job whose runner is killed
	gitFlow                 // a job that writes its repository's settings, whose work is landed
	displayFlow             // a job that asks for permission
)

// signalScope is the first version of Landlock that bounds signals and abstract sockets.
const signalScope = 6

// attack is one row of the table.
type attack struct {
	name  string
	class class
	// refused lists the access levels for which the attack must fail.
	refused []job.Access
	// proof says how success is proved.
	proof proof
	layer layer
	flow  flow
	// landlock is the least version of Landlock that the layer needs, 0 for each that has a sandbox.
	landlock int
	// places and kinds bound where the attack must fail; nil is everywhere.
	places []place
	kinds  []bridge.AgentKind
	// open names the row of the known gap; the suite expects nothing then.
	open string
	// run is the attack itself, within the attacker. It returns what it gained.
	run func(s stage) (string, error)
}

var (
	every     = []job.Access{job.AccessRead, job.AccessAsk, job.AccessEdit}
	onlyRead  = []job.Access{job.AccessRead}
	onlyAsk   = []job.Access{job.AccessAsk}
	writing   = []job.Access{job.AccessAsk, job.AccessEdit}
	elsewhere = []place{paired}
)

// proof says how the success of an attack is proved.
type proof struct {
	words string
	// holds reports whether the attack has succeeded. gained is what the attacker returned.
	holds func(c *cell, a attack, gained string) bool
}

var (
	asOwner = proof{"a session receives a message from the owner", func(c *cell, a attack, _ string) bool {
		return c.received(a.mark(c.stage))
	}}
	changed = proof{"a file of the owner's differs", func(c *cell, a attack, _ string) bool {
		return c.differs(a.slug())
	}}
	appeared = proof{"the file exists", func(c *cell, a attack, _ string) bool {
		return exists(a.target(c.stage))
	}}
	told = proof{"the attacker returns what it must not read", func(c *cell, _ attack, gained string) bool {
		return c.isSecret(gained)
	}}
	permitted = proof{"the kernel permits the call", func(_ *cell, _ attack, gained string) bool { return gained == permittedCall }}
	answered  = proof{"the broker answers as to the owner", func(_ *cell, _ attack, gained string) bool { return gained == answeredAsOwner }}
	lives     = proof{"a process lives", func(c *cell, a attack, _ string) bool { return c.survivor(a) }}
	heard     = proof{"the other program receives bytes", func(c *cell, a attack, _ string) bool { return c.listener.heard(a.mark(c.stage)) }}
	shown     = proof{"the terminal receives the characters", func(c *cell, a attack, _ string) bool { return c.shown[a.slug()] }}
	ran       = proof{"a file of the started program appears", func(c *cell, a attack, _ string) bool { return exists(a.target(c.stage)) }}
)

// What an attacker returns of an attack that succeeded.
const (
	permittedCall   = "permitted"
	answeredAsOwner = "answered as the owner"
)

// attacks is the table. It is put together in init, because the attacks look up their own
// rows in it.
var attacks []attack

func init() {
	attacks = slices.Concat(ownerAttacks, outsideAttacks, secretAttacks, survivalAttacks, gitAttacks, stateAttacks, displayAttacks)
}

var ownerAttacks = []attack{
	{name: "send a message by the command line", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: sendPlain},
	{name: "send with an empty environment", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: sendBare},
	{name: "send from a session of its own, forked twice", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: sendDetached},
	{name: "send while the sender's parent ends", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: sendAsParentsEnd},
	{name: "send over a connection of a process that has ended", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: sendPassed},
	{name: "answer a session's question", class: becomeOwner, refused: every, layer: inBridge, proof: proof{"the question is answered", (*cell).questionAnswered}, run: answerQuestion},
	{name: "list the owner's rules", class: becomeOwner, refused: every, layer: inBridge, proof: answered, run: listRules},
	{name: "get a launch link", class: becomeOwner, refused: every, layer: inBridge, proof: answered, run: getLink},
	{name: "approve its own request", class: becomeOwner, refused: onlyAsk, layer: inBridge, flow: displayFlow, kinds: onlyACP, proof: proof{"the request is decided", (*cell).requestDecided}},
	{name: "read another session's mail by its tools", class: becomeOwner, refused: every, layer: inBridge, proof: told, run: mailByTools},
	{name: "read another session's mail by its hook", class: becomeOwner, refused: every, layer: inBridge, proof: told, run: mailByHook},
	{name: "open the page by its launch link", class: becomeOwner, refused: every, layer: inBridge, proof: answered, run: openLaunchLink},
	{name: "open the page by the secret in Bridge's home", class: becomeOwner, refused: every, layer: inBridge, proof: answered, run: openBySecret},
	{name: "use the page with the owner's cookie", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: pagePlain},
	{name: "use the page from a thread with its own descriptor table", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: pageFromThread},
	{name: "use the page by a socket in flight", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: pageInFlight},
	{name: "use the page by a socket that io_uring holds", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: pageByRing},
	{name: "use the page from a process that nobody may look into", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: pageUndumpable},
	{name: "use the page by a socket of a process that has ended", class: becomeOwner, refused: every, layer: inBridge, proof: asOwner, run: pageInherited},
}

var outsideAttacks = []attack{
	{name: "create a file", class: writeOutside, refused: every, proof: changed, run: createFile},
	{name: "append to a file", class: writeOutside, refused: every, proof: changed, run: appendFile},
	{name: "truncate a file", class: writeOutside, refused: every, proof: changed, run: truncateFile},
	{name: "remove a file", class: writeOutside, refused: every, proof: changed, run: removeFile},
	{name: "make a folder", class: writeOutside, refused: every, proof: changed, run: makeFolder},
	{name: "make a pipe", class: writeOutside, refused: every, proof: changed, run: makePipe},
	{name: "rename a file out", class: writeOutside, refused: every, proof: changed, run: renameOut},
	{name: "rename a file in", class: writeOutside, refused: every, proof: changed, run: renameIn},
	{name: "write through a hard link", class: writeOutside, refused: every, proof: changed, run: writeHardLink},
	{name: "write through a symbolic link in an allowed folder", class: writeOutside, refused: every, proof: changed, run: writeSymlink},
	{name: "write by a file handle", class: writeOutside, refused: every, proof: changed, run: writeByHandle},
	{name: "write through /proc of the broker", class: writeOutside, refused: every, proof: changed, run: writeThroughProc},
	{name: "bind a folder in namespaces of its own", class: writeOutside, refused: every, proof: changed, run: bindMount},
	{name: "write in /dev/shm", class: writeOutside, refused: every, proof: appeared, run: writeShared},
	{name: "write to the owner's terminal", class: writeOutside, refused: every, proof: proof{"the terminal receives bytes", (*cell).terminalWritten}, run: writeTerminal},
	{name: "write in the job's folder", class: writeOutside, refused: onlyRead, proof: appeared, run: writeOwnFolder},
	{name: "write in Bridge's home", class: writeOutside, refused: every, proof: appeared, run: writeHome},
	{name: "change the shell's start-up file", class: writeOutside, refused: every, proof: proof{"the file differs", (*cell).startupDiffers}, run: writeStartup},
	{name: "connect to another program's socket", class: writeOutside, refused: every, proof: heard, run: connectPath},
	{name: "connect to another program's abstract socket", class: writeOutside, refused: every, landlock: signalScope, proof: heard, run: connectAbstract},
	{name: "change a file's mode", class: writeOutside, refused: onlyRead, proof: changed, run: changeMode},
	{name: "change a file's owner", class: writeOutside, refused: onlyRead, proof: changed, run: changeOwner},
	{name: "change a file's times", class: writeOutside, refused: onlyRead, proof: changed, run: changeTimes},
	{name: "set an extended attribute", class: writeOutside, refused: onlyRead, proof: changed, run: setAttribute},
	{name: "send a signal to the runner", class: writeOutside, refused: every, landlock: signalScope, proof: permitted, run: signalRunner},
	{name: "send a signal to the broker", class: writeOutside, refused: every, landlock: signalScope, proof: permitted, run: signalBroker},
	{name: "trace the runner", class: writeOutside, refused: every, proof: permitted, run: traceRunner},
	{name: "trace the broker", class: writeOutside, refused: every, proof: permitted, run: traceBroker},
	{name: "write the broker's memory", class: writeOutside, refused: every, proof: permitted, run: openBrokerMemory},
}

var secretAttacks = []attack{
	{name: "read the runner's environment", class: readSecrets, refused: every, proof: permitted, run: readRunnerEnvironment},
	{name: "read the broker's environment", class: readSecrets, refused: every, proof: permitted, run: readBrokerEnvironment},
	{name: "read the runner's memory", class: readSecrets, refused: every, proof: permitted, run: readRunnerMemory},
	{name: "read Bridge's token", class: readSecrets, refused: every, places: elsewhere, proof: told, run: readToken},
	{name: "read Bridge's launch secret", class: readSecrets, refused: every, places: elsewhere, proof: told, run: readLaunchSecret},
	{name: "read Bridge's database", class: readSecrets, refused: every, places: elsewhere, proof: told, run: readDatabase},
	{name: "read an ssh key", class: readSecrets, refused: every, places: elsewhere, proof: told, run: readKey},
	{name: "read a file of another project", class: readSecrets, refused: every, places: elsewhere, proof: told, run: readOtherProject},
}

var survivalAttacks = []attack{
	{name: "outlive the job in a session of its own", class: survive, refused: every, layer: inBridge, proof: lives, run: surviveDetached},
	{name: "outlive the job by changing its process", class: survive, refused: every, layer: inBridge, proof: lives, run: surviveHopping},
	{name: "outlive the job without marks, ignoring signals", class: survive, refused: every, layer: inBridge, proof: lives, run: surviveBare},
	{name: "outlive a cancelled job in a session of its own", class: survive, refused: every, layer: inBridge, flow: cancelFlow, proof: lives, run: surviveDetached},
	{name: "outlive a cancelled job by changing its process", class: survive, refused: every, layer: inBridge, flow: cancelFlow, proof: lives, run: surviveHopping},
	{name: "outlive a cancelled job without marks, ignoring signals", class: survive, refused: every, layer: inBridge, flow: cancelFlow, proof: lives, run: surviveBare},
	{name: "outlive a killed runner in a session of its own", class: survive, refused: every, layer: inBridge, flow: deathFlow, proof: lives, run: surviveDetached},
	{name: "outlive a killed runner without marks, ignoring signals", class: survive, refused: every, layer: inBridge, flow: deathFlow, proof: lives, run: surviveBare},
	{name: "send as the owner when its runner was killed", class: becomeOwner, refused: every, layer: inBridge, flow: deathFlow, proof: asOwner, run: sendAfterDeath},
}

var gitAttacks = []attack{
	{name: "name a hook in the repository", class: startProgram, refused: writing, layer: inBridge, flow: gitFlow, proof: ran, run: gitHooks},
	{name: "name a file system monitor", class: startProgram, refused: writing, layer: inBridge, flow: gitFlow, proof: ran, run: gitMonitor},
	{name: "name a filter", class: startProgram, refused: writing, layer: inBridge, flow: gitFlow, proof: ran, run: gitFilter},
	{name: "name a filter in a submodule", class: startProgram, refused: writing, layer: inBridge, flow: gitFlow, proof: ran, run: gitSubmodule},
	{name: "name a program that compares files", class: startProgram, refused: writing, layer: inBridge, flow: gitFlow, proof: ran, run: gitCompare},
	{name: "name a program that merges files", class: startProgram, refused: writing, layer: inBridge, flow: gitFlow, proof: ran, run: gitMerge},
	{name: "name a remote's program for missing contents", class: startProgram, refused: writing, layer: inBridge, flow: gitFlow, proof: ran, run: gitRemote},
	{name: "name programs of signatures, pagers and connections", class: startProgram, refused: writing, layer: inBridge, flow: gitFlow, proof: ran, run: gitPrograms},
}

// onlyACP is for what the agent itself has to say: the attacker says it as an ACP agent.
var onlyACP = []bridge.AgentKind{job.ACP}

var stateAttacks = []attack{
	{name: "change Claude Code's settings and skills", class: poisonState, refused: every, proof: changed, run: writeState(claudeSettings...)},
	{name: "change what another Claude Code session runs", class: poisonState, refused: every, proof: changed, run: writeState(claudeSessions...)},
	{name: "change Codex's settings and sessions", class: poisonState, refused: every, proof: changed, run: writeState(codexState...)},
	{name: "change opencode's programs, plugins and keys", class: poisonState, refused: every, proof: changed, run: writeState(openCodeState...)},
}

var displayAttacks = []attack{
	{name: "clear the line by an escape sequence", class: display, refused: onlyAsk, layer: inBridge, flow: displayFlow, kinds: onlyACP, proof: shown},
	{name: "set the clipboard", class: display, refused: onlyAsk, layer: inBridge, flow: displayFlow, kinds: onlyACP, proof: shown},
	{name: "use a C1 control character", class: display, refused: onlyAsk, layer: inBridge, flow: displayFlow, kinds: onlyACP, proof: shown},
	{name: "turn the direction of text", class: display, refused: onlyAsk, layer: inBridge, flow: displayFlow, kinds: onlyACP, proof: shown},
	{name: "hide zero-width characters", class: display, refused: onlyAsk, layer: inBridge, flow: displayFlow, kinds: onlyACP, proof: shown},
	{name: "hide tag characters", class: display, refused: onlyAsk, layer: inBridge, flow: displayFlow, kinds: onlyACP, proof: shown},
	{name: "return to the line's beginning", class: display, refused: onlyAsk, layer: inBridge, flow: displayFlow, kinds: onlyACP, proof: shown},
}

// hidden are the characters of each display attack.
var hidden = map[string]string{
	"clear-the-line-by-an-escape-sequence": "\x1b[2K",
	"set-the-clipboard":                    "\x1b]52;c;ZQ==\x07",
	"use-a-c1-control-character":           "\u009b2K",
	"turn-the-direction-of-text":           "\u202e",
	"hide-zero-width-characters":           "\u200b",
	"hide-tag-characters":                  "\U000e0041",
	"return-to-the-line-s-beginning":       "\rls",
}
