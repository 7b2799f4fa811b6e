// Bridge's mod for claude: it enters what the owner writes on the dashboard as
// the owner's own prompt, and shows what waits above the composer. Version 1.
// Written by `bridge install`; `bridge uninstall` takes it away.
//
// One child process for each conversation streams JSON lines: a prompt to enter,
// or the line to show. What became of a prompt, and that a turn has begun or ended,
// goes back by a short call of the same program. A prompt is entered only into the
// conversation that it names, only between turns and only while it is fresh;
// else it is refused, and the broker keeps it. Where nobody sits at a composer
// nothing is started. Only events of claude 2.1.287 are used: one that it does
// not know keeps the whole module from loading.

const COMMAND = ["bridge", "plugin", "claude"]

const RESTART_MS = [500, 1000, 2000, 5000, 10000, 30000]
const STEADY_MS = 60000 // a child that lived so long died of something new
const REPORT_MS = 30000

export function register(on) {
  const mod = {
    attended: false, // a person sits at the composer
    session: "", // the conversation, "" between two of them
    follows: 0, // counts the conversations followed
    child: null,
    turn: "", // the main turn under way
    row: "", // the transcript's id of the prompt that was entered last
    line: "", // what is shown above the composer
    reports: Promise.resolve(), // they are told in their order
  }

  on("session.start", async ($, e, next) => {
    const started = await next(e)
    mod.attended = e.isInteractive
    if (mod.attended) follow($, mod, await $.session.id())
    return started
  })

  on("session.end", ($, e, next) => {
    leave(mod)
    return next(e)
  })

  // After /clear and /resume: here alone the new conversation has its name.
  on("classic.SessionStart", async ($, e, next) => {
    const answer = await next(e)
    if (mod.attended && e.session_id !== mod.session) follow($, mod, e.session_id)
    return answer
  })

  // No hook tells of a turn that begins with a prompt typed in the turn before.
  on("turn.start", async ($, e, next) => {
    if (e.agentId === undefined) {
      mod.turn = e.turnId
      if (mod.session !== "") report($, mod, { event: "turn-started", session: mod.session, at: await $.clock.now() })
    }
    return next(e)
  })

  on("turn.complete", async ($, e, next) => {
    const at = await $.clock.now()
    const completed = await next(e)
    // Meanwhile the next one may have begun.
    if (e.agentId === undefined && (mod.turn === e.turnId || mod.turn === "")) {
      mod.turn = ""
      if (mod.session !== "") report($, mod, { event: "turn-ended", session: mod.session, at })
    }
    return completed
  })

  on("session.append", ($, e, next) => {
    if (e.door === "prompt" && e.origin.kind === "plugin" && e.origin.name === "bridge") mod.row = e.uuid
    return next(e)
  })

  on("ui.render", { component: "AbovePrompt" }, ($, e, next) => {
    if (mod.line === "" || e.props.hasSurvey) return next(e)
    const { Box, Text } = $.ui.resolve(e)
    return h(Box, null, h(Text, { dimColor: true }, mod.line))
  })
}

// leave ends what belongs to the conversation of before.
function leave(mod) {
  mod.session = ""
  mod.follows += 1
  mod.line = ""
  mod.child?.return?.()
  mod.child = null
}

// follow keeps one child for the conversation until there is another.
async function follow($, mod, session) {
  leave(mod)
  mod.session = session
  const own = mod.follows
  for (let failures = 0; own === mod.follows; failures++) {
    const began = await $.clock.now()
    try {
      await listen($, mod, session, own)
    } catch {
      // it could not be started: tried again, later each time
    }
    if (own === mod.follows) show($, mod, "")
    if ((await $.clock.now()) - began > STEADY_MS) failures = 0
    await $.clock.sleep(RESTART_MS[Math.min(failures, RESTART_MS.length - 1)])
  }
}

async function listen($, mod, session, own) {
  if (own !== mod.follows) return
  const argv = [...COMMAND, "--session", session]
  if (mod.turn !== "") argv.push("--busy")
  const child = $.process.spawn({ argv })
  mod.child = child
  let rest = ""
  for await (const { stream, text } of child) {
    if (stream !== "stdout") continue
    const lines = (rest + text).split("\n")
    rest = lines.pop()
    for (const line of lines) {
      if (own === mod.follows) hear($, mod, JSON.parse(line))
    }
  }
}

function hear($, mod, said) {
  if (said.line !== undefined) show($, mod, said.line)
  if (said.prompt) void enter($, mod, said.prompt)
}

function show($, mod, line) {
  if (line === mod.line) return
  mod.line = line
  $.ui.invalidate("ui.render")
}

async function enter($, mod, prompt) {
  const tell = (event, detail) => report($, mod, { event, id: prompt.id, recipient: prompt.recipient, session: prompt.session, detail: String(detail) })
  const now = await $.clock.now()
  if (prompt.session !== mod.session) return tell("moved", "another conversation")
  if (now > prompt.until) return tell("dropped", "it came to the mod too late")
  if (mod.turn !== "") return tell("busy", "a turn is under way")
  try {
    const answer = await $.prompt.submit({ text: prompt.text, asUser: true })
    if (answer.drop !== undefined) return tell("dropped", answer.drop)
    return tell("entered", mod.row)
  } catch (error) {
    return tell("dropped", error?.message ?? error)
  }
}

// report tells the broker by a short call of its own; a broker that is away is
// waited for by the call.
function report($, mod, said) {
  mod.reports = mod.reports.then(async () => {
    try {
      await $.process.run([...COMMAND, "--report"], { stdin: JSON.stringify(said), timeoutMs: REPORT_MS })
    } catch {
      // the broker finds the prompt's own trace
    }
  })
}
