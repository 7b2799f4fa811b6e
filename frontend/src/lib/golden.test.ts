// The server's golden answers, read against the types that the page is built
// on: neither side can change a shape alone.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import type {
  AgentChange,
  Agents,
  ArchiveMessage,
  ChatDelivery,
  ChatResult,
  Decision,
  DoctorReport,
  Message,
  Overdue,
  SendResult,
  Settings,
  SizePoint,
  State,
  UnreadableDecision,
  Works,
} from './api';

const step = v.picklist(['accepted', 'durable', 'woken', 'handed', 'consumed', 'answered']);
const via = v.picklist([
  '',
  'hook',
  'wake-hook',
  'channel',
  'mod',
  'plugin',
  'tool',
  'queue',
  'queue-unclear',
  'activity',
  'prompt',
  'transcript',
  'reply',
]);
const stage = v.picklist([...step.options, 'expired']);
const time = v.pipe(v.number(), v.integer());
const chatState = v.picklist(['queued', 'delivered', 'not-supported', 'unconfirmed']);

const message = v.object({
  id: v.string(),
  from_name: v.string(),
  from_agent: v.string(),
  to_target: v.string(),
  recipients: v.string(),
  body: v.string(),
  created_at: time,
  hop: v.number(),
  reply_to: v.nullable(v.string()),
  conversation_id: v.string(),
  kind: v.picklist(['message', 'decision', 'owner']),
  state: stage,
  deliveries: v.array(
    v.object({
      id: v.string(),
      name: v.string(),
      agent: v.string(),
      stage,
      note: v.string(),
      stages: v.pipe(
        v.array(
          v.object({ stage: step, at: v.nullable(time), via, evidence: v.string(), possible: v.boolean() }),
        ),
        v.length(6),
      ),
    }),
  ),
}) satisfies v.GenericSchema<unknown, Message>;

const overdue = v.object({
  id: v.string(),
  name: v.string(),
  messages: v.number(),
  oldest: v.string(),
  since: time,
}) satisfies v.GenericSchema<unknown, Overdue>;

const state = v.object({
  revision: v.number(),
  instance: v.object({ name: v.string(), version: v.string(), home: v.string() }),
  broker: v.object({
    state: v.picklist(['live', 'offline']),
    host: v.string(),
    pid: v.nullable(v.number()),
  }),
  peers: v.array(
    v.object({
      id: v.string(),
      name: v.string(),
      agent: v.string(),
      cwd: v.string(),
      state: v.picklist(['busy', 'idle']),
      sessionId: v.nullable(v.string()),
      since: time,
      children: v.array(v.object({ id: v.string(), title: v.string(), state: v.string() })),
      autoWake: v.boolean(),
      wakeOnDirect: v.boolean(),
      unread: v.number(),
      transport: v.string(),
      wake: v.picklist(['open', 'slow', 'failed', 'none']),
      detail: v.string(),
      cli: v.string(),
      problem: v.string(),
      reach: v.object({
        owner: v.string(),
        wokenBy: v.string(),
        obstacle: v.string(),
        child: v.object({ direct: v.boolean(), brief: v.string(), limit: v.string(), hint: v.string() }),
      }),
    }),
  ),
  messages: v.array(message),
  overdue: v.array(overdue),
  lastHour: v.object({ messages: v.number(), at: time }),
  storage: v.object({
    ok: v.nullable(v.boolean()),
    errors: v.number(),
    warnings: v.number(),
    lastBackup: v.nullable(time),
  }),
}) satisfies v.GenericSchema<unknown, State>;

const unreadable = v.object({
  id: v.string(),
  topic: v.string(),
  why: v.string(),
  newer: v.boolean(),
}) satisfies v.GenericSchema<unknown, UnreadableDecision>;

const decision = v.object({
  id: v.string(),
  topic: v.string(),
  text: v.string(),
  scope: v.union([
    v.literal('all'),
    v.object({ project: v.string() }),
    v.object({ sessions: v.array(v.string()) }),
  ]),
  author: v.object({ id: v.string(), name: v.string(), agent: v.string() }),
  createdAt: time,
  sourceMessageId: v.nullable(v.string()),
  supersedes: v.nullable(v.string()),
  current: v.boolean(),
}) satisfies v.GenericSchema<unknown, Decision>;

const agents = v.object({
  agents: v.array(
    v.object({
      kind: v.string(),
      found: v.boolean(),
      path: v.string(),
      version: v.string(),
      connected: v.boolean(),
      detail: v.string(),
      refused: v.string(),
      missing: v.array(v.string()),
    }),
  ),
  command: v.string(),
  refused: v.string(),
}) satisfies v.GenericSchema<unknown, Agents>;

const change = v.object({
  kind: v.string(),
  done: v.boolean(),
  digest: v.pipe(v.string(), v.nonEmpty()),
  edits: v.array(
    v.object({
      path: v.string(),
      verb: v.picklist(['makes', 'changes', 'removes']),
      adds: v.string(),
      diff: v.array(v.string()),
    }),
  ),
  notes: v.array(v.string()),
}) satisfies v.GenericSchema<unknown, AgentChange>;

const action = v.picklist(['backup', 'drill', 'check', 'archive', 'fix', 'restore', 'merge']);
const work = v.object({
  action,
  state: v.picklist(['running', 'done', 'failed']),
  began: time,
  ended: v.nullable(time),
  step: v.string(),
  done: v.number(),
  all: v.number(),
  result: v.string(),
});
const works = v.object({
  running: v.nullable(work),
  ended: v.array(work),
  offers: v.array(
    v.object({
      action,
      explains: v.string(),
      consent: v.boolean(),
      refused: v.string(),
      command: v.string(),
    }),
  ),
  hints: v.record(v.string(), v.pipe(v.string(), v.nonEmpty())),
}) satisfies v.GenericSchema<unknown, Works>;

const settings = v.object({
  port: v.number(),
  autoWake: v.boolean(),
  wakeOnDirect: v.boolean(),
  desktop: v.object({ notifications: v.boolean() }),
  claude: v.object({ statusLine: v.boolean() }),
  login: v.nullable(v.object({ on: v.boolean(), why: v.string() })),
  servedPort: v.number(),
}) satisfies v.GenericSchema<unknown, Settings>;

const sizes = v.object({
  points: v.array(v.object({ at: time, total: v.number(), parts: v.record(v.string(), v.number()) })),
}) satisfies v.GenericSchema<unknown, { points: SizePoint[] }>;

const chat = v.object({
  state: chatState,
  transport: v.string(),
  receipt: v.nullable(v.string()),
  detail: v.string(),
}) satisfies v.GenericSchema<unknown, ChatResult>;

const receipt = v.object({
  id: v.string(),
  state: chatState,
  transport: v.string(),
  updatedAt: time,
}) satisfies v.GenericSchema<unknown, ChatDelivery>;

const archived = v.object({
  id: v.string(),
  from_name: v.string(),
  from_agent: v.string(),
  to_target: v.string(),
  recipients: v.string(),
  body: v.string(),
  created_at: time,
  hop: v.number(),
  reply_to: v.nullable(v.string()),
}) satisfies v.GenericSchema<unknown, ArchiveMessage>;

const report = v.object({
  checkedAt: time,
  ok: v.boolean(),
  schema: v.array(v.object({ path: v.string(), actual: v.number(), expected: v.number() })),
  findings: v.array(
    v.object({
      severity: v.picklist(['error', 'warning']),
      code: v.string(),
      path: v.string(),
      detail: v.string(),
      fixable: v.boolean(),
    }),
  ),
  sizes: v.array(v.object({ path: v.string(), bytes: v.number() })),
  totalBytes: v.number(),
  backups: v.array(v.object({ path: v.string(), createdAt: time })),
}) satisfies v.GenericSchema<unknown, DoctorReport>;

const sent = v.object({
  id: v.string(),
  conversationId: v.string(),
  recipients: v.array(v.object({ name: v.string(), online: v.boolean(), wake: v.boolean() })),
}) satisfies v.GenericSchema<unknown, SendResult>;

describe('the server answers as the page expects', () => {
  it.each([
    ['state.json', state],
    ['state-empty.json', state],
    ['state-offline.json', state],
    ['overdue.json', v.object({ overdue: v.array(overdue) })],
    ['message.json', message],
    ['messages.json', v.object({ messages: v.array(message) })],
    ['decisions.json', v.object({ decisions: v.array(decision) })],
    [
      'decisions-unreadable.json',
      v.object({ decisions: v.array(decision), unreadable: v.array(unreadable) }),
    ],
    ['history.json', v.object({ topic: v.string(), decisions: v.array(decision) })],
    ['archive.json', v.object({ messages: v.array(archived) })],
    ['agents.json', agents],
    ['agent-change.json', change],
    ['works.json', works],
    ['sizes.json', sizes],
    ['settings.json', settings],
    ['chat.json', chat],
    ['chat-child.json', chat],
    ['chat-delivery.json', receipt],
    ['sent.json', sent],
    ['storage.json', report],
    ['error.json', v.object({ error: v.pipe(v.string(), v.nonEmpty()) })],
  ])('%s', (file, schema) => {
    const golden = join(import.meta.dirname, '../../../backend/dashboard/testdata', file);
    const answer: unknown = JSON.parse(readFileSync(golden, 'utf8'));
    const { issues } = v.safeParse(schema as v.GenericSchema, answer);
    expect(issues?.map((i) => `${v.getDotPath(i) ?? ''}: ${i.message}`)).toBeUndefined();
  });
});
