package bridge

import "strings"

// OwnerCommand is a command of the program bridge that only the owner runs (JOB-11, SEC-07).
type OwnerCommand struct {
	Words string // what stands behind the program's name: the command, perhaps with a flag
	Does  string // what it does, as it follows the words "only the owner"
	Shows bool   // it only shows something
}

// ownerCommands are all of them, in the order of their words.
var ownerCommands = []OwnerCommand{
	{Words: "answer", Does: "answers by this command"},
	{Words: "approve", Does: "answers by this command"},
	{Words: "decide", Does: "pins and withdraws by this command"},
	{Words: "files --cancel", Does: movesFiles},
	{Words: "finish", Does: "finishes the work of a job"},
	{Words: "install", Does: connectsAgents},
	{Words: "join", Does: trusts},
	{Words: "leave", Does: trusts},
	{Words: "link", Does: trusts},
	{Words: "needs", Does: "is told what needs him", Shows: true},
	{Words: "needs --away", Does: "switches away mode"},
	{Words: "pair", Does: trusts},
	{Words: "rules", Does: "lists the standing rules, and takes them back"},
	{Words: "send-file", Does: movesFiles},
	{Words: "uninstall", Does: connectsAgents},
	{Words: "unlink", Does: trusts},
}

const (
	connectsAgents = "decides what agents have of Bridge"
	movesFiles     = "sends files to other PCs"
	trusts         = "decides about other PCs"
)

// OwnerDoes returns what only the owner does by a command with these words. It panics for
// a command that is none of the owner's: whoever refuses one has it in the list.
func OwnerDoes(words string) string {
	for _, command := range ownerCommands {
		if command.Words == words {
			return command.Does
		}
	}
	panic("bridge " + words + " is no command of the owner's")
}

// OwnerDecides returns the words of the commands by which the owner decides something,
// each as a list: those of all his commands that do not only show.
func OwnerDecides() (commands [][]string) {
	for _, command := range ownerCommands {
		if !command.Shows {
			commands = append(commands, strings.Fields(command.Words))
		}
	}
	return commands
}

// OwnerCommands returns all commands that only the owner runs.
func OwnerCommands() []OwnerCommand { return append([]OwnerCommand{}, ownerCommands...) }
