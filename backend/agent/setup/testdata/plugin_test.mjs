// Tests of opencode/bridge.js without opencode: node plugin_test.mjs PLUGIN DIR.
import assert from "node:assert/strict"
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { mock } from "node:test"
import { pathToFileURL } from "node:url"

const [, , plugin, root] = process.argv
setInterval(() => {}, 1000) // the plugin keeps no process alive; this does
const { setTimeout: afterwards } = globalThis
mock.timers.enable({ apis: ["setTimeout"] }) // the plugin's time passes when a test says so
const { BridgePlugin } = await import(pathToFileURL(plugin))

// lines are what the child has noted, without the one that it may be writing.
const lines = () => (existsSync(dir + "/lines") ? readFileSync(dir + "/lines", "utf8").split("\n").slice(0, -1).map((l) => JSON.parse(l)) : [])
const events = () => lines().map((l) => l.event ?? (l.confirm ? "confirm" : "start"))
const until = async (what, holds) => {
  for (const end = Date.now() + 20000; !holds(); ) {
    assert.ok(Date.now() < end, `waiting for ${what}: ${JSON.stringify(lines())}`)
    await new Promise((resolve) => afterwards(resolve, 10))
  }
}

// load starts the plugin in a new project and returns its hooks, with what it
// prompted.
let dir
async function load(mode, sessions = {}) {
  dir = mkdtempSync(root + "/p")
  writeFileSync(dir + "/mode", mode)
  const prompts = []
  const client = {
    session: {
      get: async ({ path }) => ({ data: sessions[path.id] }),
      promptAsync: async (request) => (prompts.push(request), client.answer),
      // There is no abort: calling it would be an error.
    },
    answer: {},
  }
  const input = { client, directory: dir }
  const hooks = await BridgePlugin(input)
  await until("the child process", () => events().includes("start"))
  return { hooks, again: () => BridgePlugin(input), client, prompts }
}

const main = { id: "ses_1", agent: "plan", model: { id: "m", providerID: "p" } }
const child = { id: "ses_2", parentID: "ses_1", title: "a child" }
const created = (info, id) => ({ event: { id: id ?? "evt_" + info.id, type: "session.created", properties: { info } } })
const idle = (sessionID) => ({ event: { id: "evt_idle" + Math.random(), type: "session.idle", properties: { sessionID } } })
const status = (sessionID, type) => ({ event: { id: "evt_s" + Math.random(), type: "session.status", properties: { sessionID, status: { type } } } })
const tests = {
  async "a mute child counts as nothing"() {
    const { hooks, prompts } = await load("mute")
    await hooks.event(created(main))
    const args = { limit: 1 }
    const told = hooks["chat.message"]({ sessionID: "ses_1" }, { message: { id: "m1" }, parts: [{ type: "text", text: "hi" }] })
    await until("the child to hear the prompt", () => events().includes("chat.message"))
    mock.timers.tick(1000)
    await told
    await hooks["tool.execute.before"]({ tool: "bridge_inbox", sessionID: "ses_1" }, { args })
    assert.deepEqual(args, { limit: 1, _bridge_session: "ses_1" })
    assert.deepEqual(prompts, [])
    await hooks.dispose()
  },
  async "two loads are one, and hear everything once"() {
    const { hooks, again } = await load("answer")
    const other = await again()
    for (const load of [hooks, other]) {
      await load.event(created(main))
      await load["chat.message"]({ sessionID: "ses_1" }, { message: { id: "m1" }, parts: [{ type: "text", text: "hi" }] })
      await load["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", callID: "c1" })
    }
    assert.deepEqual(events(), ["start", "session.created", "chat.message", "tool.execute.after"])
    await hooks.dispose()
    await other["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", callID: "c2" })
    assert.equal(events().length, 5, "the link lives as long as one load does")
    await other.dispose()
  },
  async "mail joins a running turn and starts one in an idle session"() {
    const { hooks, prompts } = await load("answer")
    await hooks.event(created(main))
    await hooks["chat.message"](
      { sessionID: "ses_1", agent: "plan", model: { providerID: "p", modelID: "m" } },
      { message: { id: "m1" }, parts: [{ type: "text", text: "hi" }] },
    )
    writeFileSync(dir + "/text", "MAIL 1")
    await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", callID: "c1" })
    writeFileSync(dir + "/text", "MAIL 2")
    await hooks.event(idle("ses_1"))
    const body = { agent: "plan", model: { providerID: "p", modelID: "m" }, variant: undefined }
    assert.deepEqual(prompts, [
      { path: { id: "ses_1" }, body: { ...body, parts: [{ type: "text", text: "MAIL 1" }], noReply: true } },
      { path: { id: "ses_1" }, body: { ...body, parts: [{ type: "text", text: "MAIL 2" }] } },
    ])
    await until("both confirmations", () => events().filter((e) => e === "confirm").length === 2)
    assert.deepEqual(lines().find((l) => l.confirm).confirm, {
      loan: { id: "L", recipient: "P", messages: ["M"] }, stage: "handed", detail: "step",
    })
    // Our own text comes back as a prompt: no sign of life of the session.
    await hooks["chat.message"]({ sessionID: "ses_1" }, { message: { id: "m2" }, parts: [{ type: "text", text: "MAIL 2" }] })
    assert.equal(events().filter((e) => e === "chat.message").length, 1)
    await hooks.event(status("ses_1", "busy")) // but that the turn began is one
    assert.equal(events().filter((e) => e === "chat.message").length, 2)
    await hooks.dispose()
  },
  async "what opencode did not store is not confirmed"() {
    const { hooks, client, prompts } = await load("answer")
    client.answer = { error: { name: "NotFound" } }
    await hooks.event(created(main))
    writeFileSync(dir + "/text", "MAIL")
    await hooks.event(idle("ses_1"))
    await hooks.event(idle("ses_1"))
    assert.equal(prompts.length, 1)
    assert.ok(!events().includes("confirm"))
    assert.equal(lines().filter((l) => l.back === "L").length, 1, "it is given back")
    await hooks.dispose()
  },
  async "what comes too late is given back and asked for again"() {
    const { hooks, prompts } = await load("late")
    await hooks.event(created(main))
    writeFileSync(dir + "/text", "MAIL")
    const told = hooks.event(idle("ses_1"))
    await until("the child to hear of it", () => events().includes("session.idle"))
    mock.timers.tick(1000)
    await told
    writeFileSync(dir + "/mode", "answer")
    await until("the mail to be given back", () => lines().some((l) => l.back === "L"))
    await until("the idle session to ask again", () => events().filter((e) => e === "session.idle").length === 2)
    assert.deepEqual(prompts, [])
    await hooks.dispose()
  },
  async "a child reports as one and gets nothing"() {
    const { hooks, prompts } = await load("answer")
    await hooks.event(created(main))
    await hooks.event(created(child))
    writeFileSync(dir + "/text", "MAIL")
    await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_2", callID: "c1" })
    await hooks.event(idle("ses_2"))
    assert.deepEqual(prompts, [])
    assert.deepEqual(events(), ["start", "session.created", "session.child", "tool.execute.after", "session.child.idle"])
    const call = lines().at(-1).call
    assert.deepEqual([call.sessionId, call.childId, call.childTitle], ["ses_1", "ses_2", "a child"])
    const args = { _bridge_session: "forged", _bridge_child: "forged" }
    await hooks["tool.execute.before"]({ tool: "bridge_inbox", sessionID: "ses_2" }, { args })
    assert.deepEqual(args, { _bridge_session: "ses_1", _bridge_child: "ses_2" })
    await hooks.dispose()
  },
  async "a forged identity is taken out, and other tools are left alone"() {
    const { hooks } = await load("answer")
    await hooks.event(created(main))
    const args = { _bridge_session: "ses_9", _bridge_child: "x" }
    await hooks["tool.execute.before"]({ tool: "bridge_send", sessionID: "ses_1" }, { args })
    assert.deepEqual(args, { _bridge_session: "ses_1" })
    const unknown = { _bridge_session: "ses_9" }
    await hooks["tool.execute.before"]({ tool: "bridge_send", sessionID: "ses_unknown" }, { args: unknown })
    assert.deepEqual(unknown, {})
    const others = { _bridge_session: "kept" }
    await hooks["tool.execute.before"]({ tool: "bash", sessionID: "ses_1" }, { args: others })
    assert.deepEqual(others, { _bridge_session: "kept" })
    await hooks.dispose()
  },
  async "a resumed session is looked up, and reported before anything else"() {
    const { hooks } = await load("answer", { ses_1: main, ses_2: child })
    await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_2", callID: "c1" })
    assert.deepEqual(events(), ["start", "session.created", "tool.execute.after"])
    assert.equal(lines()[1].call.sessionId, "ses_1")
    await hooks.dispose()
  },
  async "a child process that died is started again and told of the sessions"() {
    const { hooks } = await load("answer")
    await hooks.event(created(main))
    await until("the report", () => events().length === 2)
    writeFileSync(dir + "/mode", "die")
    await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", callID: "c1" })
    mock.timers.tick(500)
    await until("the second start", () => events().filter((e) => e === "session.created").length === 2)
    assert.deepEqual(events(), ["start", "session.created", "tool.execute.after", "start", "session.created"])
    await hooks.dispose()
  },
  async "a confirmation that a child died over is made to the next one first"() {
    const { hooks, prompts } = await load("answer")
    await hooks.event(created(main))
    await until("the report", () => events().length === 2)
    writeFileSync(dir + "/text", "MAIL")
    writeFileSync(dir + "/mode", "die confirming")
    await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", callID: "c1" })
    assert.equal(prompts.length, 1)
    await until("the confirmation", () => events().includes("confirm"))
    await until("the next child's confirmation", () => {
      mock.timers.tick(500) // as soon as the end of the child is seen
      return events().filter((e) => e === "confirm").length === 2
    })
    await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", callID: "c2" })
    const last = events().slice(events().lastIndexOf("start"))
    assert.deepEqual(last, ["start", "confirm", "session.created", "tool.execute.after"])
    assert.equal(prompts.length, 1)
    await hooks.dispose()
  },
}

for (const [name, test] of Object.entries(tests)) {
  try {
    await test()
  } catch (error) {
    console.error(`${name}: ${error.stack}`)
    process.exit(1)
  }
}
process.exit(0)
