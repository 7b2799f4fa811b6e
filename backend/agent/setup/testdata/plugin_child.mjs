// The plugin's child in the plugin's tests: it notes every line and answers by
// the file `mode` of the project: answer (with the file `text`, once, as a broker
// would), late (the same, but the mail only once the mode is answer again), mute,
// die (end at the next line, and answer from then on), or die confirming (the same
// at the next confirmation). A permission prompt is answered by the file `answer`, where
// there is one.
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createInterface } from "node:readline"

const dir = process.cwd()
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n")
const mode = () => readFileSync(dir + "/mode", "utf8")
const note = (line) => appendFileSync(dir + "/lines", JSON.stringify(line) + "\n")

note({ start: true })
createInterface({ input: process.stdin }).on("line", (line) => {
  const request = JSON.parse(line)
  const asked = mode() // before the test, which reads the note, may change it
  note(request)
  if (asked === "mute") return
  if (asked === "die" || (asked === "die confirming" && request.confirm)) {
    writeFileSync(dir + "/mode", "answer")
    process.exit(1)
  }
  if (request.prompt && existsSync(dir + "/answer")) say({ answer: JSON.parse(readFileSync(dir + "/answer", "utf8")) })
  if (request.prompt || request.settled) return
  const reply = { id: request.id }
  if (request.event && request.event !== "session.created" && existsSync(dir + "/text")) {
    reply.text = readFileSync(dir + "/text", "utf8")
    reply.loan = { id: "L", recipient: "P", messages: ["M"] }
    rmSync(dir + "/text")
  }
  answer(reply)
})

function answer(reply) {
  if (reply.loan && mode() === "late") setTimeout(answer, 10, reply)
  else say(reply)
}
