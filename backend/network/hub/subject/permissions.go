package subject

// Permissions lists what the server allows one PC; everything else is refused.
type Permissions struct {
	Publish   []string
	Subscribe []string
}

// For returns what one PC of a team may do. It may publish under its own id, and receive
// from its own inbox. It may read decisions, presence and the roster, and receive frames
// for it. It may not create, change or list objects of the engine.
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
			// Its inbox: the consumer's state, the waiting messages, the acknowledgements.
			api + "CONSUMER.INFO." + messages + "." + Consumer(pc),
			api + "CONSUMER.MSG.NEXT." + messages + "." + Consumer(pc),
			"$JS.ACK." + messages + "." + Consumer(pc) + ".>",
			// What every PC of the team may read.
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
