package subject

// Permissions are what the server lets one PC do; everything else is refused.
type Permissions struct {
	Publish   []string
	Subscribe []string
}

// For lists what one PC of a team may do: speak under its own identity, take what waits
// in its own inbox, read decisions, presence and who is in the team, and hear what is
// meant for it. It makes, changes and lists nothing of the engine's.
func For(team, pc string) Permissions {
	messages, decisions := MessageStream(team), DecisionStream(team)
	presence, roster := BucketStream(PresenceBucket(team)), BucketStream(RosterBucket(team))
	const api = "$JS.API."
	return Permissions{
		Publish: []string{
			Subject{Team: team, From: pc, To: "*", Sort: Frame}.String(),
			Subject{Team: team, From: pc, To: "*", Sort: Message}.String(),
			Subject{Team: team, From: pc, Sort: Decision}.String(),
			BucketKey(PresenceBucket(team), pc),
			// Its inbox: to know it, to ask for what waits, to acknowledge it.
			api + "CONSUMER.INFO." + messages + "." + Consumer(pc),
			api + "CONSUMER.MSG.NEXT." + messages + "." + Consumer(pc),
			"$JS.ACK." + messages + "." + Consumer(pc) + ".>",
			// What everybody in the team may read.
			api + "STREAM.INFO." + decisions,
			api + "DIRECT.GET." + decisions,
			api + "STREAM.INFO." + presence,
			api + "DIRECT.GET." + presence,
			api + "DIRECT.GET." + presence + ".>",
			api + "STREAM.INFO." + roster,
			api + "DIRECT.GET." + roster,
			api + "DIRECT.GET." + roster + ".>",
		},
		Subscribe: []string{
			InboxPrefix(pc) + ".>",
			Frames(team, pc),
			DecisionSubjects(team),
			BucketKey(PresenceBucket(team), "*"),
			BucketKey(RosterBucket(team), "*"),
		},
	}
}
