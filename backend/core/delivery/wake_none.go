package delivery

// noneRow is the row of a kind that receives all mail through its hooks and cannot be
// woken (CHT-08).
var noneRow = row{
	asleep: "an idle {kind} session cannot be woken",
	mail: []line{
		noHook,
		{
			open: anyFacts, way: ByHooks, wake: WakeNone,
			detail: byHooks + "; it cannot be woken while idle, so mail then waits for its next turn.",
			words:  sentence{busy: busyHooks, idle: "It waits in the inbox; " + nextTurn + ", for an idle {kind} cannot be woken."},
		},
	},
	child: parentOnly,
}
