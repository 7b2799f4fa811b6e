// A session of the test's own: a real MCP server process that does what it is told.

import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { BINARY } from './dashboard';

interface Answer {
  error?: { message: string };
  result?: { isError?: boolean; content?: { text: string }[] };
}

export class Session {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #answers: AsyncIterator<string>;
  #asked = 0;

  private constructor(args: string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(BINARY, ['mcp', ...args], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Begins a session and waits until it is open. */
  static async begin(args: string[], env: NodeJS.ProcessEnv = process.env): Promise<Session> {
    const session = new Session(args, env);
    await session.#ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    session.#write({ method: 'notifications/initialized' });
    return session;
  }

  /** Calls one of Bridge's tools and gives its text. */
  async call(tool: string, args: object = {}): Promise<string> {
    const { result } = await this.#ask('tools/call', { name: tool, arguments: args });
    const text = result?.content?.map((c) => c.text).join('\n') ?? '';
    if (result?.isError === true) throw new Error(`${tool}: ${text}`);
    return text;
  }

  /** Ends it as its agent would, and waits until it is gone. */
  async end(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.stdin.end();
    if (this.#child.exitCode === null && this.#child.signalCode === null) await ended;
  }

  #write(message: object): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  /** One question at a time: what comes meanwhile are notices, without an id. */
  async #ask(method: string, params: object): Promise<Answer> {
    const id = ++this.#asked;
    this.#write({ id, method, params });
    for (;;) {
      const { value, done } = await this.#answers.next();
      if (done === true) throw new Error(`the session ended before it answered ${method}`);
      const answer = JSON.parse(value) as Answer & { id?: number };
      if (answer.id !== id) continue;
      if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
      return answer;
    }
  }
}
