package bridge

import "strings"

// OwnerCommand is a command of the program bridge that only the owner may run (JOB-11, SEC-07).
type OwnerCommand struct {
	Words string // the words after the program's name: the command, perhaps with a flag
	Does  string // its effect, as continuation of "only the owner"
	Shows bool   // it only displays something
}

// ownerCommands are all of them, sorted by their words.
var ownerCommands = []OwnerCommand{
	{Words: "allow", Does: trusts},
	{Words: "answer", Does: "answers by this command"},
	{Words: "approve", Does: "answers by this command"},
	{Words: "config", Does: "reads and changes the settings by this command"},
	{Words: "decide", Does: "pins and withdraws by this command"},
	{Words: "deny", Does: trusts},
	{Words: "files --cancel", Does: movesFiles},
	{Words: "finish", Does: "finishes the work of a job"},
	{Words: "install", Does: connectsAgents},
	{Words: "join", Does: trusts},
	{Words: "leave", Does: trusts},
	{Words: "link", Does: trusts},
	{Words: "needs", Does: "is told what needs him", Shows: true},
	{Words: "needs --away", Does: "switches away mode"},
	{Words: "network off", Does: trusts},
	{Words: "network on", Does: trusts},
	{Words: "pair", Does: trusts},
	{Words: "pause", Does: pausesExchanges},
	{Words: "resume", Does: pausesExchanges},
	{Words: "rules", Does: "lists the standing rules, and takes them back"},
	{Words: "send-file", Does: movesFiles},
	{Words: "uninstall", Does: connectsAgents},
	{Words: "unlink", Does: trusts},
}

const (
	connectsAgents = "decides what agents have of Bridge"
	movesFiles     = "sends files to other PCs"
	trusts         = "decides about other PCs"

	pausesExchanges = "pauses and resumes the messages of two sessions"
)

// OwnerDoes returns the effect of the owner's command with these words. It panics for
// any other command, because a caller that refuses one must have it in the list.
func OwnerDoes(action string) string {
	for _, command := range ownerCommands {
		if command.Words == action {
			return command.Does
		}
	}
	panic("bridge " + action + " is no command of the owner's")
}

// OwnerDecides returns the owner's commands that do more than display, each as a list
// of words.
func OwnerDecides() (commands [][]string) {
	for _, command := range ownerCommands {
		if !command.Shows {
			commands = append(commands, strings.Fields(command.Words))
		}
	}
	return commands
}

// OwnerCommands returns all commands that only the owner may run.
func OwnerCommands() []OwnerCommand { return append([]OwnerCommand{}, ownerCommands...) }
