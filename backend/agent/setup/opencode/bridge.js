// Bridge's plugin for opencode: it reports what sessions do and puts the mail
// that comes back into them. Written by `bridge install`; `bridge uninstall`
// takes it away.
//
// It talks to one long-lived child process in JSON lines. opencode never waits
// for that child: a reply that is not there within a second counts as nothing,
// and a child that died is started again, later each time. Mail is confirmed
// only after opencode stored it, so what goes wrong here is offered again; a
// confirmation that no child heard is repeated to the next one, before anything
// that may bring mail.

import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const COMMAND = ["bridge", "plugin", "opencode"]

const REPLY_MS = 1000 // how long opencode may wait for us
const RESTART_MS = [500, 1000, 2000, 5000, 10000, 30000]
const MAX_BACKLOG = 1 << 20 // bytes waiting for a child that does not read
const MAX_PROMPT = 4000 // characters of a prompt that are reported
const MAX_REMEMBERED = 500 // texts of ours, and calls heard

const EVENTS = ["session.created", "session.updated", "session.status", "session.idle", "session.deleted", "permission.asked", "permission.replied", "question.asked", "question.replied", "question.rejected"]

// opencode may load a plugin more than once, and tell only one of the loads what
// happens, or both. Per process and folder there is one link, and what it has
// been told it does not hear again.
const links = (globalThis[Symbol.for("bridge.opencode")] ??= new Map())

export const BridgePlugin = async ({ client, directory }) => {
  const link = links.get(directory) ?? new Link(directory)
  links.set(directory, link)
  return link.hooks(client)
}

class Link {
  constructor(directory) {
    this.directory = directory
    this.sessions = new Map() // id -> { root, parent, title, busy, agent, model, variant, … }
    this.loads = 0
    this.sent = new Set() // texts that we put into sessions ourselves
    this.heard = new Set() // ids of events, prompts and tool calls
    this.waiting = new Map() // request id -> function that takes the reply
    this.late = new Map() // request id -> session, where the reply did not come in time
    this.prompts = new Map() // id of an open permission prompt -> { session, line, answering }
    this.unheard = new Map() // loan id -> confirmation that no child has answered
    this.lastID = 0
    this.failures = 0
    this.start()
  }

  // ---- the child process

  start() {
    let child
    try {
      child = spawn(COMMAND[0], COMMAND.slice(1), {
        cwd: this.directory,
        stdio: ["pipe", "pipe", "ignore"],
        windowsHide: true,
      })
    } catch {
      return this.restart()
    }
    this.child = child
    const gone = () => this.child === child && this.restart()
    child.on("error", gone)
    child.on("exit", gone)
    child.stdin.on("error", gone)
    createInterface({ input: child.stdout }).on("line", (line) => this.receive(line))
    // The child must not keep opencode from ending.
    for (const handle of [child, child.stdin, child.stdout]) handle?.unref?.()
    this.heardOf = Promise.all([...this.unheard.values()].map((confirmation) => this.confirm(confirmation)))
    for (const [id, session] of this.sessions) if (session.reported) this.report(id, session)
    for (const { line } of this.prompts.values()) this.write({ prompt: line })
  }

  restart() {
    this.child = undefined
    for (const take of this.waiting.values()) take({})
    const pause = RESTART_MS[Math.min(this.failures++, RESTART_MS.length - 1)]
    this.timer = setTimeout(() => this.start(), pause)
    this.timer.unref?.()
  }

  close() {
    const child = this.child
    this.child = undefined
    clearTimeout(this.timer)
    links.delete(this.directory)
    child?.stdin.end()
  }

  write(line) {
    const input = this.child?.stdin
    if (!input?.writable || input.writableLength > MAX_BACKLOG) return false
    input.write(JSON.stringify(line) + "\n")
    return true
  }

  receive(line) {
    let message
    try {
      message = JSON.parse(line)
    } catch {
      return
    }
    this.failures = 0
    if (this.waiting.has(message.id)) this.waiting.get(message.id)(message)
    else if (message.loan) {
      this.giveBack(message.loan) // nobody waits for it any more
      this.ring(this.late.get(message.id))
    } else if (message.answer) this.answer(message.answer)
    else if (message.mail && message.wake) this.ring(message.mail)
  }

  // ask resolves to the child's reply, or to {} when there is none in time.
  ask(line) {
    const id = ++this.lastID
    return new Promise((resolve) => {
      const take = (reply) => {
        clearTimeout(timer)
        this.waiting.delete(id)
        resolve(reply)
      }
      const timer = setTimeout(() => {
        if (this.late.size >= MAX_REMEMBERED) this.late.clear()
        this.late.set(id, line.call?.sessionId)
        take({})
      }, REPLY_MS)
      timer.unref?.()
      this.waiting.set(id, take)
      if (!this.write({ id, ...line })) take({})
    })
  }

  // confirm says what became of a loan. Without an answer the next child is told,
  // too: the broker would offer the mail again.
  async confirm(confirmation) {
    const { id } = confirmation.loan
    this.unheard.set(id, confirmation)
    if (this.unheard.size > MAX_REMEMBERED) this.unheard.delete(this.unheard.keys().next().value)
    const reply = await this.ask({ confirm: confirmation })
    if (reply.id && !reply.error) this.unheard.delete(id)
  }

  // giveBack says that the mail of a reply reached no session: it is offered
  // again.
  giveBack(loan) {
    this.write({ id: ++this.lastID, back: loan.id })
  }

  // ---- sessions

  learn(info) {
    const session = this.sessions.get(info.id) ?? { busy: false }
    session.parent = info.parentID
    session.title = info.title
    session.agent ??= info.agent
    if (info.model?.id) session.model ??= { providerID: info.model.providerID, modelID: info.model.id }
    this.sessions.set(info.id, session)
    return session
  }

  // know returns a session, which may be one from before this process.
  async know(id) {
    if (this.sessions.has(id)) return this.sessions.get(id)
    const late = new Promise((resolve) => setTimeout(resolve, REPLY_MS).unref?.())
    const found = await Promise.race([this.client.session.get({ path: { id } }), late]).catch(() => {})
    return found?.data ? this.learn(found.data) : undefined
  }

  // who names the session that a call came from: the root, and the child when
  // it is one. undefined when opencode does not know it.
  async who(id) {
    let session = await this.know(id)
    if (!session) return undefined
    const call = { sessionId: id, cwd: this.directory }
    while (session?.parent) {
      call.childId = id
      call.childTitle ??= session.title
      call.sessionId = session.parent
      session = await this.know(session.parent)
    }
    return call
  }

  report(id, session) {
    session.reported = true
    this.ask({ event: "session.created", call: { sessionId: id, cwd: this.directory } })
  }

  // tell reports an event of a session. What comes back is put into the session
  // when it is a root; opencode waits for that at most REPLY_MS.
  async tell(event, id, more) {
    const call = await this.who(id)
    if (!call) return
    await this.heardOf
    const root = this.sessions.get(call.sessionId)
    if (root && !root.reported) this.report(call.sessionId, root)
    const reply = await this.ask({ event, call: { ...call, ...more } })
    if (reply.text && !call.childId) await this.deliver(id, reply)
  }

  // deliver stores the text in the session: quietly while a turn is running,
  // else as the prompt of a new turn. The agent and the model stay those of the
  // session: without them opencode would fall back to its defaults.
  async deliver(id, { text, loan }) {
    const session = this.sessions.get(id)
    const quiet = session.busy
    remember(this.sent, text)
    const { agent, model, variant } = session
    const body = { agent, model, variant, parts: [{ type: "text", text }] }
    if (quiet) body.noReply = true
    else session.woken = true
    const result = await this.client.session.promptAsync({ path: { id }, body }).catch((error) => ({ error }))
    if (result?.error) {
      session.woken = false
      if (loan) this.giveBack(loan)
      return
    }
    if (loan) this.confirm({ loan, stage: "handed", detail: quiet ? "step" : "turn" })
  }

  // ring answers news of mail that may wake: an idle session asks for it, a busy
  // one does at its next step anyway.
  ring(id) {
    if (this.sessions.get(id)?.busy === false) this.tell("session.idle", id)
  }

  // ---- permission prompts, and what the model asks

  // asked tells of a prompt. opencode shows it meanwhile, and the first answer wins.
  async asked({ id, sessionID, permission, patterns, metadata, questions }) {
    const call = await this.who(sessionID)
    if (!call) return
    const line = questions ? { id, call, questions } : { id, call, permission, patterns, metadata }
    this.prompts.set(id, { session: sessionID, line })
    this.write({ prompt: line })
  }

  // answer gives opencode its user's answer. Only one that it takes was handed over.
  async answer({ id, allow, message, answers }) {
    const prompt = this.prompts.get(id)
    if (!prompt || prompt.answering) return
    let url = `/permission/${id}/reply`
    let body = allow ? { reply: "once" } : { reply: "reject", message }
    if (prompt.line.questions) {
      if (allow && !answers) return
      url = `/question/${id}/${allow ? "reply" : "reject"}`
      body = allow ? { answers } : {}
    }
    prompt.answering = this.client._client
      .request({ method: "POST", url, body, headers: { "content-type": "application/json" } })
      .then((result) => !result?.error, () => false)
    if (await prompt.answering) this.write({ settled: { id, event: "delivered" } })
  }

  // replied says how a prompt ended.
  replied({ requestID, reply }) {
    return this.settle(requestID, reply === "reject" ? "refused" : "allowed")
  }

  // rest ends the prompts of a session whose turn is over.
  rest(sessionID) {
    for (const [id, { session }] of this.prompts) if (session === sessionID) this.settle(id, "gone")
  }

  // settle tells the end of a prompt once, after what was handed over. The end of the
  // turn may be heard before how the prompt came to it.
  async settle(id, event) {
    const prompt = this.prompts.get(id)
    if (!prompt) return
    const isFirst = prompt.event === undefined
    if (isFirst || event !== "gone") prompt.event = event
    if (!isFirst) return
    await prompt.answering
    this.prompts.delete(id)
    this.write({ settled: { id, event: prompt.event } })
  }

  // ---- what opencode calls

  hooks(client) {
    this.loads++
    this.client ??= client
    // once runs a hook unless it ran for the same id; its errors end here.
    const once = async (id, hook) => {
      if (id && this.heard.has(id)) return
      remember(this.heard, id)
      this.client = client
      await hook().catch(() => {})
    }
    return {
      event: async ({ event }) => {
        if (EVENTS.includes(event.type)) await once(event.id, () => this.onEvent(event.type, event.properties))
      },
      "chat.message": (input, output) => once(output.message?.id, () => this.onPrompt(input, output)),
      "tool.execute.before": (input, output) => once(undefined, () => this.onToolBefore(input, output)),
      "tool.execute.after": ({ tool, sessionID, callID }) =>
        once(callID && sessionID + callID, () =>
          this.tell("tool.execute.after", sessionID, { toolUseId: callID, tool })),
      dispose: async () => {
        if (--this.loads === 0) this.close()
      },
    }
  }

  async onEvent(type, properties) {
    const { info, sessionID, status } = properties
    switch (type) {
      case "permission.asked":
      case "question.asked":
        return this.asked(properties)
      case "permission.replied":
      case "question.replied": // with its answers in place of a reply
        return this.replied(properties)
      case "question.rejected":
        return this.replied({ ...properties, reply: "reject" })
      case "session.created": {
        const session = this.learn(info)
        return session.parent ? this.tell("session.child", info.id) : this.report(info.id, session)
      }
      case "session.updated":
        this.learn(info)
        return
      case "session.status": {
        const session = await this.know(sessionID)
        if (!session) return
        session.busy = status.type !== "idle"
        if (!session.busy || !session.woken) return
        session.woken = false
        return this.tell("chat.message", sessionID)
      }
      case "session.idle": {
        const session = await this.know(sessionID)
        if (!session) return
        session.busy = false
        this.rest(sessionID)
        return this.tell(session.parent ? "session.child.idle" : "session.idle", sessionID)
      }
      case "session.deleted":
        this.rest(info.id)
        await this.tell("session.deleted", info.id)
        this.sessions.delete(info.id)
    }
  }

  async onPrompt({ sessionID, agent, model, variant }, { parts }) {
    const session = await this.know(sessionID)
    if (!session) return
    const prompt = parts.filter((part) => part.type === "text").map((part) => part.text).join("\n")
    if (this.sent.delete(prompt)) return
    Object.assign(session, { agent: agent ?? session.agent, model: model ?? session.model, variant })
    if (session.parent) return
    session.busy = true
    return this.tell("chat.message", sessionID, { prompt: prompt.slice(0, MAX_PROMPT) })
  }

  // One MCP server serves all sessions of the process, and opencode does not
  // tell it which one calls: we write that into the arguments, over whatever the
  // model may have put there.
  async onToolBefore({ tool, sessionID }, output) {
    if (!tool.startsWith("bridge_")) return
    const args = (output.args ??= {})
    delete args._bridge_session
    delete args._bridge_child
    const call = await this.who(sessionID)
    if (!call) return
    args._bridge_session = call.sessionId
    if (call.childId) args._bridge_child = call.childId
  }
}

// remember adds to a set that forgets its oldest entries.
function remember(set, entry) {
  set.add(entry)
  if (set.size > MAX_REMEMBERED) set.delete(set.values().next().value)
}
