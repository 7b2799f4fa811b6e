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
const settled = () => lines().flatMap((l) => (l.settled ? [l.settled.id + " " + l.settled.event] : []))
const prompted = () => lines().filter((l) => l.prompt)
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
    posts: [],
    _client: {
      request: async (request) => {
        client.posts.push(request)
        return client.post(request)
      },
    },
    post: async () => ({ data: true }),
  }
  const input = { client, directory: dir }
  const hooks = await BridgePlugin(input)
  await until("the child process", () => events().includes("start"))
  return { hooks, again: () => BridgePlugin(input), client, prompts }
}

const main = { id: "ses_1", agent: "plan", model: { id: "m", providerID: "p" } }
const child = { id: "ses_2", parentID: "ses_1", title: "a child" }
const created = (info, id) => ({ event: { id: id ?? "evt_" + info.id, type: "session.created", properties: { info } } })
const asked = (id, sessionID, command) => ({
  event: {
    id: "evt_" + id,
    type: "permission.asked",
    properties: { id, sessionID, permission: "bash", patterns: [command], metadata: { command }, always: [command + " *"] },
  },
})
const replied = (requestID, sessionID, reply) => ({
  event: { id: "evt_r" + requestID, type: "permission.replied", properties: { sessionID, requestID, reply } },
})
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
  async "an answer to a prompt goes to opencode once, and is proven by its own word"() {
    const { hooks, client } = await load("answer")
    await hooks.event(created(main))
    writeFileSync(dir + "/answer", JSON.stringify({ id: "per_1", allow: true }))
    let post // opencode tells of the answer before it has confirmed it
    client.post = () => new Promise((resolve) => (post = () => resolve({ data: true })))
    await hooks.event(asked("per_1", "ses_1", "make"))
    await until("the answer", () => client.posts.length === 1)
    assert.deepEqual(prompted()[0].prompt, { id: "per_1", call: { sessionId: "ses_1", cwd: dir }, permission: "bash", patterns: ["make"], metadata: { command: "make" } })
    const { method, url, body } = client.posts[0]
    assert.deepEqual([method, url, body], ["POST", "/permission/per_1/reply", { reply: "once" }])
    const told = hooks.event(replied("per_1", "ses_1", "once"))
    assert.deepEqual(settled(), [])
    post()
    await told
    await until("both words", () => settled().length === 2)
    assert.deepEqual(settled(), ["per_1 delivered", "per_1 allowed"])
    await hooks.dispose()
  },
  async "a refusal takes its reason along, and one that came too late was not handed over"() {
    const { hooks, client } = await load("answer")
    await hooks.event(created(main))
    writeFileSync(dir + "/answer", JSON.stringify({ id: "per_1", allow: false, message: "not now" }))
    client.post = async () => ({ error: { name: "PermissionNotFoundError" } })
    await hooks.event(asked("per_1", "ses_1", "make"))
    await until("the answer", () => client.posts.length === 1)
    assert.deepEqual(client.posts[0].body, { reply: "reject", message: "not now" })
    await hooks.event(replied("per_1", "ses_1", "once"))
    await until("opencode's word", () => settled().length === 1)
    assert.deepEqual(settled(), ["per_1 allowed"])
    await hooks.dispose()
  },
  async "a refusal that ends the turn is told as one, whichever is heard first"() {
    for (const order of [
      [replied("per_1", "ses_1", "reject"), idle("ses_1")],
      [idle("ses_1"), replied("per_1", "ses_1", "reject")],
    ]) {
      const { hooks, client } = await load("answer")
      await hooks.event(created(main))
      writeFileSync(dir + "/answer", JSON.stringify({ id: "per_1", allow: false, message: "no" }))
      let post
      client.post = () => new Promise((resolve) => (post = () => resolve({ data: true })))
      await hooks.event(asked("per_1", "ses_1", "make"))
      await until("the answer", () => client.posts.length === 1)
      const told = order.map((event) => hooks.event(event))
      post()
      await Promise.all(told)
      await until("both words", () => settled().length === 2)
      assert.deepEqual(settled(), ["per_1 delivered", "per_1 refused"])
      await hooks.dispose()
    }
  },
  async "what the model asks is answered by what was chosen, or dismissed"() {
    const { hooks, client } = await load("answer")
    await hooks.event(created(main))
    const questions = [{ question: "Which?", header: "Q", options: [{ label: "A", description: "a" }], multiple: true }]
    const ask = (id) => hooks.event({ event: { id: "evt_" + id, type: "question.asked", properties: { id, sessionID: "ses_1", questions, tool: {} } } })
    const over = (type, requestID, more) => hooks.event({ event: { id: "evt_r" + requestID, type, properties: { requestID, sessionID: "ses_1", ...more } } })
    writeFileSync(dir + "/answer", JSON.stringify({ id: "que_1", allow: true, answers: [["A", "b"]] }))
    await ask("que_1")
    await until("the answer", () => client.posts.length === 1)
    assert.deepEqual(prompted()[0].prompt, { id: "que_1", call: { sessionId: "ses_1", cwd: dir }, questions })
    await over("question.replied", "que_1", { answers: [["A", "b"]] })
    writeFileSync(dir + "/answer", JSON.stringify({ id: "que_2", allow: false, message: "no" }))
    await ask("que_2")
    await until("the refusal", () => client.posts.length === 2)
    await over("question.rejected", "que_2")
    writeFileSync(dir + "/answer", JSON.stringify({ id: "que_3", allow: true }))
    await ask("que_3")
    await over("question.rejected", "que_3")
    await until("all words", () => settled().length === 5)
    assert.deepEqual(settled(), ["que_1 delivered", "que_1 allowed", "que_2 delivered", "que_2 refused", "que_3 refused"])
    const sent = client.posts.map(({ method, url, body }) => [method, url, body])
    assert.deepEqual(sent, [
      ["POST", "/question/que_1/reply", { answers: [["A", "b"]] }],
      ["POST", "/question/que_2/reject", {}],
    ])
    await hooks.dispose()
  },
  async "prompts end with the terminal's answer and with the turn, and each once"() {
    const { hooks, client } = await load("answer")
    await hooks.event(created(main))
    await hooks.event(created(child))
    for (const id of ["per_1", "per_2", "per_3"]) await hooks.event(asked(id, id === "per_3" ? "ses_2" : "ses_1", id))
    await until("the prompts", () => prompted().length === 3)
    assert.equal(prompted()[2].prompt.call.childId, "ses_2")
    await hooks.event(replied("per_1", "ses_1", "reject"))
    await hooks.event(replied("per_1", "ses_1", "reject"))
    await hooks.event(idle("ses_1"))
    await hooks.event(replied("per_2", "ses_1", "reject"))
    await until("their ends", () => settled().length === 2)
    assert.deepEqual(settled(), ["per_1 refused", "per_2 gone"])
    assert.deepEqual(client.posts, [])
    await hooks.dispose()
  },
  async "a child process that died is told of the prompts that are open"() {
    const { hooks } = await load("answer")
    await hooks.event(created(main))
    await hooks.event(asked("per_1", "ses_1", "make"))
    await until("the prompt", () => prompted().length === 1)
    writeFileSync(dir + "/mode", "die")
    await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", callID: "c1" })
    await until("the prompt again", () => {
      mock.timers.tick(500)
      return prompted().length === 2
    })
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
