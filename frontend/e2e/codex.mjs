#!/usr/bin/env node
// Plays `codex app-server` for the tests of jobs. What it does stands in its
// prompt, a line a step:
//
//   say WORDS              run COMMAND => EXIT      write FILE WORDS
//   ask COMMAND            until FILE (exists)      progress PERCENT MINUTES NOTE
//   change FILE WORDS (asks before it writes)
//   fail WORDS             limit                    answer WORDS (the end)
//   ticks NUMBER (lines that say when they were written, some a second)

import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const THREAD = '01a201cf-2f34-74f1-97de-5f6a357728f4';
let cwd = process.cwd();
let config = {};
let items = 0;
let turns = 0;
let turn = '';
const asked = new Map();
const EFFORTS = [{ reasoningEffort: 'low' }, { reasoningEffort: 'high' }];
const soon = (seconds) => Math.floor(Date.now() / 1000) + seconds;

if (process.argv.includes('--version')) {
  console.log('codex-cli 0.169.0');
  process.exit(0);
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const tell = (method, params) => say({ method, params: { threadId: THREAD, ...params } });
const done = (item) => tell('item/completed', { item });
const words = (text) => done({ type: 'agentMessage', id: `m${++items}`, text });

/** A step of the turn: what it does, and how that ended. */
async function step(item, act) {
  const id = `s${++items}`;
  tell('item/started', { item: { id, status: 'inProgress', ...item } });
  const end = await act(id);
  done({ id, ...item, status: 'completed', ...end });
}

/** The answer to a question about a command, or about a change of files without one. */
function ask(id, command) {
  const request = `q${++items}`;
  say({
    id: request,
    method: `item/${command ? 'commandExecution' : 'fileChange'}/requestApproval`,
    params: { threadId: THREAD, turnId: turn, itemId: id, command, cwd, reason: 'the tests need it' },
  });
  return new Promise((answered) => asked.set(request, answered));
}

async function appears(file) {
  while (!existsSync(file)) await new Promise((later) => setTimeout(later, 20));
}

/** Calls report_progress of the server of tools that this job was given. */
async function progress(percent, minutes, note) {
  const server = config['mcp_servers.bridge'];
  const tools = spawn(server.command, server.args, {
    env: { HOME: process.env.HOME, PATH: process.env.PATH, ...server.env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const write = (line) => tools.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`);
  const hello = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'codex', version: '1' },
  };
  write({ id: 1, method: 'initialize', params: hello });
  for await (const line of createInterface({ input: tools.stdout })) {
    const { id } = JSON.parse(line);
    if (id === 1) {
      write({ method: 'notifications/initialized' });
      const args = { percent: Number(percent), eta_minutes: Number(minutes), note };
      write({ id: 2, method: 'tools/call', params: { name: 'report_progress', arguments: args } });
    }
    if (id === 2) tools.stdin.end();
  }
}

const acts = {
  say: (rest) => words(rest),
  run: (rest) => {
    const [command, exit = '0'] = rest.split(' => ');
    return step({ type: 'commandExecution', command }, () => ({
      exitCode: Number(exit),
      aggregatedOutput: '',
    }));
  },
  ask: (rest) =>
    step({ type: 'commandExecution', command: rest }, async (id) =>
      (await ask(id, rest)) === 'accept' ? { exitCode: 0, aggregatedOutput: '' } : { status: 'declined' },
    ),
  write: (rest) => {
    const [file, ...text] = rest.split(' ');
    return step({ type: 'fileChange', changes: [{ path: file, diff: '' }] }, () => {
      writeFileSync(join(cwd, file), `${text.join(' ').replaceAll('\\n', '\n')}\n`);
      return {};
    });
  },
  change: (rest) => {
    const [file, ...text] = rest.split(' ');
    const changes = [{ path: file, diff: `+${text.join(' ')}` }];
    return step({ type: 'fileChange', changes }, async (id) => {
      if ((await ask(id)) !== 'accept') return { status: 'declined' };
      writeFileSync(join(cwd, file), `${text.join(' ')}\n`);
      return {};
    });
  },
  until: (rest) => appears(rest),
  ticks: async (rest) => {
    for (let i = 0; i < Number(rest); i++) {
      words(`tick ${Date.now()}`);
      await new Promise((later) => setTimeout(later, 120 + ((i * 67) % 230)));
    }
  },
  progress: (rest) => {
    const [percent, minutes, ...note] = rest.split(' ');
    return progress(percent, minutes, note.join(' '));
  },
};

async function play(script) {
  tell('turn/started', { turn: { id: turn, status: 'inProgress' } });
  const end = { id: turn, status: 'completed', items: [] };
  let answer = 'Nothing was asked for.';
  for (const line of script.split('\n')) {
    const [, act = '', rest = ''] = /^\s*(\w+) ?(.*)$/.exec(line) ?? [];
    if (act === 'answer') answer = rest.replaceAll('\\n', '\n');
    if (act === 'fail')
      Object.assign(end, { status: 'failed', error: { message: rest, codexErrorInfo: 'other' } });
    if (act === 'limit') {
      const error = { message: "You've hit your usage limit.", codexErrorInfo: 'usageLimitExceeded' };
      Object.assign(end, { status: 'failed', error });
    }
    await acts[act]?.(rest);
  }
  if (end.status === 'completed') words(answer);
  const total = { totalTokens: 12_600, inputTokens: 11_000, outputTokens: 1600, cachedInputTokens: 9000 };
  tell('thread/tokenUsage/updated', { tokenUsage: { total, last: total, modelContextWindow: 200_000 } });
  turn = '';
  tell('turn/completed', { turn: end });
}

function handle({ method, params }) {
  switch (method) {
    case 'initialize':
      return { userAgent: 'bridge-job/0.169.0 (test)' };
    case 'command/exec':
      return { exitCode: 7 };
    case 'model/list':
      return {
        data: [
          { model: 'test-model', displayName: 'Test', isDefault: true, supportedReasoningEfforts: EFFORTS },
          { model: 'small-model', displayName: 'Small', supportedReasoningEfforts: EFFORTS.slice(0, 1) },
        ],
      };
    case 'account/rateLimits/read':
      return {
        rateLimits: {
          planType: 'plus',
          primary: { usedPercent: 94, windowDurationMins: 300, resetsAt: soon(3600) },
          secondary: { usedPercent: 12.4, windowDurationMins: 10_080, resetsAt: soon(86_400) },
        },
      };
    case 'thread/start':
    case 'thread/resume':
      cwd = params.cwd;
      config = params.config ?? {};
      return { model: 'test-model', thread: { id: params.threadId ?? THREAD } };
    case 'turn/start': {
      turn = `turn${++turns}`;
      const [{ text }] = params.input;
      setImmediate(() => {
        done({ type: 'userMessage', clientId: params.clientUserMessageId });
        void play(text);
      });
      return { turn: { id: turn } };
    }
    case 'turn/steer': {
      const [{ text }] = params.input;
      setImmediate(() => {
        if (params.clientUserMessageId !== '')
          done({ type: 'userMessage', clientId: params.clientUserMessageId });
        words(`I read: ${text}`);
      });
      return { turnId: turn };
    }
    case 'turn/interrupt':
      setImmediate(() => tell('turn/completed', { turn: { id: turn, status: 'interrupted', items: [] } }));
      return {};
    default:
      return {};
  }
}

for await (const raw of createInterface({ input: process.stdin })) {
  const line = JSON.parse(raw);
  if (line.method === undefined) {
    const answered = asked.get(line.id);
    tell('serverRequest/resolved', { requestId: line.id });
    answered?.(line.result.decision);
    continue;
  }
  const result = handle(line);
  if (line.id !== undefined) say({ id: line.id, result });
}
process.exit(0);
