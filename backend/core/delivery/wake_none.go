package delivery

// noneRow is the row of antigravity. It receives all mail through its hooks and cannot
// be woken (CHT-08).
var noneRow = row{
	server: "end antigravity and continue the session",
	asleep: "an idle antigravity session cannot be woken",
	mail: []line{
		noHook,
		{
			open: anyFacts, way: ByHooks, wake: WakeNone,
			detail: byHooks + "; it cannot be woken while idle, so mail then waits for its next turn.",
			words:  sentence{busy: busyHooks, idle: "It waits in the inbox; " + nextTurn + ", for an idle antigravity cannot be woken."},
		},
	},
	child: parentOnly,
}
