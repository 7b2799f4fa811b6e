package delivery

// pluginRow is the row of a kind that receives all mail through its plugin, which
// starts a turn of an idle session (CHT-07).
var pluginRow = row{
	mail: []line{
		{
			open: func(f Facts) bool { return f.Plugin }, way: ByPlugin, wake: WakeOpen,
			detail: "Its plugin hands mail over at the next step, and starts a turn when it is idle and the wake policy allows it.",
			words: sentence{
				busy: "The plugin of {name} stores it for the next step; the running turn is not interrupted.",
				idle: "The plugin of {name} starts a turn with it.",
			},
		},
		noHook,
		sleeping,
	},
	child: parentOnly,
}
