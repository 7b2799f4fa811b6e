// The server's golden answers, read against the types that the page is built
// on: neither side can change a shape alone.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import type {
  EndedSession,
  Activity,
  AgentChange,
  AgentModels,
  Agents,
  AgentStanding,
  AgentUsage,
  Approval,
  ArchiveMessage,
  ChatDelivery,
  ChatResult,
  Costs,
  Decision,
  Diff,
  DoctorReport,
  Finished,
  Hour,
  Message,
  Need,
  Network,
  NetworkPlan,
  PCList,
  PCName,
  Rule,
  Run,
  RunDetail,
  RunTurn,
  Question,
  Said,
  SendResult,
  Settings,
  SizePoint,
  State,
  UnreadableDecision,
  Works,
} from './api';
import type { SharedDraft } from './drafts';

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
const stage = v.picklist([...step.options, 'expired', 'at-hub', 'arrived', 'refused']);
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

const need = v.object({
  id: v.string(),
  sort: v.picklist([
    'offline',
    'storage',
    'approval',
    'question',
    'job-asks',
    'job-ended',
    'job-review',
    'exchange',
    'mail',
    'expired',
    'agent',
    'routes',
  ]),
  title: v.string(),
  detail: v.string(),
  since: time,
  until: v.nullable(time),
  place: v.string(),
  link: v.pipe(v.string(), v.startsWith('#/')),
  urgency: v.picklist(['now', 'next', 'info']),
  by: v.string(),
  news: v.boolean(),
  exchange: v.optional(
    v.object({
      a: v.object({ id: v.string(), name: v.string() }),
      b: v.object({ id: v.string(), name: v.string() }),
      paused: v.boolean(),
    }),
  ),
}) satisfies v.GenericSchema<unknown, Need>;

const status = v.picklist([
  'queued',
  'starting',
  'running',
  'waiting',
  'finished',
  'failed',
  'refused',
  'limit',
  'cancelled',
  'interrupted',
]);
const waitFor = v.picklist(['approval', 'budget', 'timeout', 'repeat', 'silence', 'retry']);

const finishAction = v.picklist(['apply', 'squash', 'merge', 'keep', 'discard', 'undo']);

const landing = v.object({
  action: finishAction,
  state: v.picklist(['begun', 'done', 'staged', 'failed']),
  at: time,
  commit: v.exactOptional(v.string()),
  head: v.exactOptional(v.string()),
  on: v.exactOptional(v.string()),
});

const question = v.object({
  id: v.string(),
  by: v.string(),
  agent: v.string(),
  project: v.string(),
  title: v.string(),
  context: v.string(),
  topic: v.string(),
  options: v.array(v.object({ id: v.string(), label: v.string(), consequence: v.string() })),
  blocking: v.boolean(),
  state: v.picklist(['open', 'answered', 'cancelled', 'superseded']),
  askedAt: time,
  endedAt: v.nullable(time),
  answer: v.nullable(
    v.object({
      option: v.string(),
      text: v.string(),
      words: v.string(),
      pinned: v.boolean(),
      receipt: v.string(),
    }),
  ),
}) satisfies v.GenericSchema<unknown, Question>;

const run = v.object({
  run: v.string(),
  job: v.string(),
  by: v.string(),
  agent: v.string(),
  called: v.string(),
  title: v.string(),
  status,
  wait: v.nullable(v.object({ for: waitFor, until: v.exactOptional(time) })),
  ended: v.string(),
  model: v.string(),
  effort: v.string(),
  access: v.picklist(['read', 'ask', 'edit']),
  layer: v.string(),
  progress: v.object({
    percent: v.nullable(v.number()),
    etaMinutes: v.nullable(v.number()),
    note: v.string(),
  }),
  step: v.string(),
  workdir: v.string(),
  branch: v.string(),
  session: v.string(),
  tokens: v.number(),
  costUsd: v.number(),
  startedAt: v.nullable(time),
  endedAt: v.nullable(time),
  remote: v.exactOptional(v.object({ host: v.string(), name: v.string() })),
  doubt: v.exactOptional(v.string()),
  worktree: v.nullable(
    v.object({
      path: v.string(),
      repository: v.string(),
      bytes: v.number(),
      stays: v.string(),
      reclaimedAt: v.nullable(time),
      landing: v.nullable(landing),
      landed: v.nullable(landing),
    }),
  ),
}) satisfies v.GenericSchema<unknown, Run>;

const runDetail = v.object({
  ...run.entries,
  prompt: v.string(),
  result: v.nullable(
    v.object({
      status,
      text: v.string(),
      error: v.string(),
      at: v.nullable(time),
      evidence: v.object({
        base: v.string(),
        head: v.string(),
        files: v.array(
          v.object({
            path: v.string(),
            from: v.exactOptional(v.string()),
            status: v.string(),
            added: v.number(),
            removed: v.number(),
          }),
        ),
        commands: v.array(v.object({ command: v.string(), exit: v.nullable(v.number()) })),
        tokens: v.number(),
        costUsd: v.number(),
        durationMs: v.number(),
        ended: v.string(),
        layer: v.string(),
      }),
      variables: v.array(v.string()),
    }),
  ),
}) satisfies v.GenericSchema<unknown, RunDetail>;

const runDiff = v.object({
  base: v.string(),
  head: v.string(),
  files: v.array(
    v.object({
      path: v.string(),
      from: v.string(),
      status: v.string(),
      added: v.number(),
      removed: v.number(),
      binary: v.boolean(),
      patch: v.string(),
      cut: v.boolean(),
    }),
  ),
}) satisfies v.GenericSchema<unknown, Diff>;

const runTurns = v.object({
  turns: v.array(
    v.object({
      run: v.number(),
      message: v.string(),
      by: v.array(v.string()),
      status: v.union([status, v.literal('')]),
      ended: v.string(),
      text: v.string(),
      error: v.string(),
      at: v.nullable(time),
      durationMs: v.number(),
      tokens: v.number(),
      costUsd: v.number(),
    }),
  ),
}) satisfies v.GenericSchema<unknown, { turns: RunTurn[] }>;

const drafts = v.object({
  drafts: v.array(v.object({ key: v.string(), at: time, value: v.unknown() })),
}) satisfies v.GenericSchema<unknown, { drafts: SharedDraft[] }>;

const tokens = v.object({
  tools: v.number(),
  notes: v.number(),
  mail: v.number(),
  notices: v.number(),
  total: v.number(),
});
const costs = v.object({
  bytesPerToken: v.number(),
  keptDays: v.number(),
  sessions: v.array(
    v.object({
      id: v.string(),
      name: v.string(),
      agent: v.string(),
      total: tokens,
      days: v.array(v.object({ day: v.string(), tokens })),
    }),
  ),
}) satisfies v.GenericSchema<unknown, Costs>;
const endedSessions = v.object({
  sessions: v.array(v.object({ name: v.string(), agent: v.string(), seenAt: time })),
  more: v.boolean(),
}) satisfies v.GenericSchema<unknown, { sessions: EndedSession[]; more: boolean }>;

const finished = v.object({
  action: finishAction,
  conflicts: v.array(v.string()),
  done: v.boolean(),
  commit: v.string(),
  branch: v.string(),
  checkout: v.string(),
}) satisfies v.GenericSchema<unknown, Finished>;

const said = v.object({
  job: v.string(),
  status,
  delivery: v.nullable(v.picklist(['running', 'continued', 'queued', 'applied'])),
}) satisfies v.GenericSchema<unknown, Said>;

const runLog = v.object({ text: v.string(), next: v.number(), size: v.number() });

const approval = v.object({
  id: v.string(),
  job: v.string(),
  session: v.string(),
  by: v.string(),
  kind: v.string(),
  what: v.string(),
  detail: v.string(),
  cwd: v.string(),
  why: v.string(),
  state: v.picklist(['asked', 'answered', 'delivered', 'applied', 'expired', 'withdrawn']),
  askedAt: time,
  expiresAt: v.nullable(time),
  answeredAt: v.nullable(time),
  answeredBy: v.string(),
  decision: v.picklist(['allow', 'deny', '']),
  reason: v.string(),
  remote: v.exactOptional(v.object({ host: v.string(), name: v.string() })),
  elsewhere: v.exactOptional(
    v.picklist(['allowed', 'refused', 'answered', 'stopped', 'gone', 'unheld', 'unclear']),
  ),
  onlyTold: v.exactOptional(v.string()),
  caution: v.exactOptional(v.string()),
  choices: v.exactOptional(
    v.array(
      v.object({
        question: v.string(),
        header: v.exactOptional(v.string()),
        options: v.array(
          v.object({
            label: v.string(),
            description: v.exactOptional(v.string()),
            preview: v.exactOptional(v.string()),
          }),
        ),
        several: v.exactOptional(v.boolean()),
        words: v.exactOptional(v.boolean()),
      }),
    ),
  ),
  answers: v.exactOptional(v.array(v.array(v.string()))),
  fromNowOn: v.exactOptional(
    v.object({
      exact: v.boolean(),
      words: v.array(v.string()),
      least: v.number(),
      folder: v.string(),
      why: v.string(),
    }),
  ),
}) satisfies v.GenericSchema<unknown, Approval>;

const rule = v.object({
  id: v.string(),
  agent: v.string(),
  kind: v.string(),
  tool: v.string(),
  match: v.picklist(['exact', 'prefix']),
  text: v.string(),
  words: v.array(v.string()),
  folder: v.string(),
  says: v.string(),
  until: v.nullable(time),
  madeAt: time,
  uses: v.number(),
  lastUse: v.nullable(time),
  lastFor: v.string(),
}) satisfies v.GenericSchema<unknown, Rule>;

const answerPrompts = v.picklist(['off', 'away', 'always']);

const models = v.object({
  agent: v.string(),
  asOf: time,
  models: v.array(
    v.object({ id: v.string(), name: v.string(), efforts: v.array(v.string()), default: v.boolean() }),
  ),
  note: v.string(),
}) satisfies v.GenericSchema<unknown, AgentModels>;

const usage = v.object({
  agent: v.string(),
  asOf: time,
  plan: v.string(),
  limits: v.array(v.object({ name: v.string(), usedPercent: v.number(), resetsAt: v.nullable(time) })),
  note: v.string(),
}) satisfies v.GenericSchema<unknown, AgentUsage>;

const state = v.object({
  revision: v.number(),
  tag: v.string(),
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
      unknownSince: v.number(),
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
  lastHour: v.object({ messages: v.number(), at: time }),
  runs: v.array(run),
  worktrees: v.object({ count: v.number(), bytes: v.number() }),
  approvals: v.array(approval),
  needs: v.array(need),
  prompting: v.object({ answerPrompts, away: v.boolean() }),
  noticesFrom: v.number(),
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
  withdrawn: v.exactOptional(v.literal(true)),
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
      jobs: v.boolean(),
      proof: v.nullable(
        v.object({ version: v.string(), at: time, problem: v.string(), broken: v.array(v.string()) }),
      ),
    }),
  ),
  command: v.string(),
  refused: v.string(),
  looked: v.array(v.string()),
}) satisfies v.GenericSchema<unknown, Agents>;

const standing = v.object({
  kind: v.string(),
  jobs: v.boolean(),
}) satisfies v.GenericSchema<unknown, AgentStanding>;

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
  desktop: v.object({
    notifications: v.boolean(),
    quiet: v.nullable(v.object({ from: v.string(), to: v.string() })),
  }),
  claude: v.object({ statusLine: v.boolean() }),
  mail: v.object({ exchange: v.number() }),
  backups: v.object({ auto: v.boolean(), everyHours: v.number() }),
  answerPrompts,
  prove: v.picklist(['auto', 'off']),
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

const pcName = { name: v.string(), id: v.string(), fingerprint: v.string() };

const network = v.object({
  ...pcName,
  enabled: v.boolean(),
  listening: v.array(v.string()),
  failed: v.string(),
  invitation: v.nullable(
    v.object({
      id: v.string(),
      state: v.picklist(['open', 'used', 'burnt', 'expired']),
      code: v.string(),
      addresses: v.array(v.string()),
      localOnly: v.boolean(),
      expiresAt: time,
      wrongCodes: v.number(),
      burntAt: v.number(),
      peer: v.nullable(v.object(pcName)),
    }),
  ),
  peers: v.array(
    v.object({
      ...pcName,
      up: v.boolean(),
      since: v.nullable(time),
      release: v.string(),
      capabilities: v.array(v.string()),
      update: v.string(),
      failed: v.string(),
      allowed: v.object({
        jobs: v.boolean(),
        messages: v.boolean(),
        decisions: v.boolean(),
        dashboard: v.boolean(),
        files: v.boolean(),
      }),
      may: v.string(),
      member: v.boolean(),
      paired: v.boolean(),
      before: v.nullable(v.object({ fingerprint: v.string(), since: time })),
    }),
  ),
  policy: v.object({
    revision: v.string(),
    listen: v.array(v.string()),
    port: v.number(),
    own: v.array(v.string()),
    jobsEnabled: v.boolean(),
    allowRoots: v.array(v.object({ path: v.string(), warning: v.string() })),
    agents: v.array(v.string()),
    kinds: v.array(v.string()),
    maxAccess: v.picklist(['read', 'ask', 'edit']),
    jobsOff: v.string(),
    unpaired: v.array(v.string()),
    otherTeams: v.array(v.string()),
  }),
  team: v.nullable(
    v.object({
      team: v.string(),
      name: v.string(),
      id: v.string(),
      fingerprint: v.string(),
      own: v.boolean(),
      up: v.boolean(),
      since: v.nullable(time),
      server: v.string(),
      failed: v.string(),
      decisions: v.boolean(),
      may: v.string(),
      unheard: v.array(v.string()),
      sees: v.string(),
      carried: v.string(),
      seal: v.boolean(),
      dropped: v.array(v.object({ words: v.string(), count: v.number(), last: time, hostile: v.boolean() })),
      watched: v.nullable(time),
      waits: v.nullable(v.object({ words: v.string(), since: time })),
    }),
  ),
}) satisfies v.GenericSchema<unknown, Network>;

const networkLists = v.object({
  peers: v.array(
    v.object({
      name: v.string(),
      id: v.string(),
      messages: v.boolean(),
      sessions: v.array(
        v.object({ name: v.string(), agent: v.string(), state: v.string(), cwd: v.string(), since: time }),
      ),
      jobs: v.array(
        v.object({
          name: v.string(),
          agent: v.string(),
          status: v.string(),
          title: v.string(),
          cwd: v.string(),
          since: time,
        }),
      ),
      asOf: v.nullable(time),
      failed: v.string(),
    }),
  ),
}) satisfies v.GenericSchema<unknown, { peers: PCList[] }>;

const plan = v.object({
  saved: v.boolean(),
  changes: v.array(v.object({ name: v.string(), before: v.string(), after: v.string() })),
  warnings: v.array(v.string()),
  network,
}) satisfies v.GenericSchema<unknown, NetworkPlan>;

const paired = v.object({ ...pcName, may: v.string() }) satisfies v.GenericSchema<
  unknown,
  PCName & { may: string }
>;

const span = v.object({ from: time, to: v.nullable(time) });
const activity = v.object({
  since: time,
  at: time,
  began: v.nullable(time),
  work: v.record(v.string(), v.array(span)),
  messages: v.array(
    v.object({
      id: v.string(),
      from: v.string(),
      agent: v.string(),
      to: v.string(),
      kind: v.picklist(['message', 'decision', 'owner']),
      at: time,
      words: v.string(),
      ways: v.array(
        v.object({
          name: v.string(),
          stage: v.picklist([...stage.options, 'arrived', 'refused']),
          woken: v.nullable(time),
          read: v.nullable(time),
        }),
      ),
    }),
  ),
  complete: v.boolean(),
}) satisfies v.GenericSchema<Activity>;
const hours = v.object({
  hours: v.pipe(
    v.array(
      v.object({ from: time, messages: v.number(), wakes: v.number() }) satisfies v.GenericSchema<Hour>,
    ),
    v.length(24),
  ),
});

describe('the server answers as the page expects', () => {
  it.each([
    ['state.json', state],
    ['state-empty.json', state],
    ['state-offline.json', state],
    ['needs.json', v.object({ needs: v.array(need) })],
    ['message.json', message],
    ['messages.json', v.object({ messages: v.array(message) })],
    ['withdrawn.json', v.object({ decision, deliveredTo: v.array(v.string()) })],
    ['decisions.json', v.object({ decisions: v.array(decision) })],
    [
      'decisions-unreadable.json',
      v.object({ decisions: v.array(decision), unreadable: v.array(unreadable) }),
    ],
    ['history.json', v.object({ topic: v.string(), decisions: v.array(decision) })],
    ['archive.json', v.object({ messages: v.array(archived) })],
    ['agents.json', agents],
    ['agents-proven.json', agents],
    ['agents-connected.json', v.object({ agents: v.array(standing) })],
    ['agent-change.json', change],
    ['works.json', works],
    ['sizes.json', sizes],
    ['activity.json', activity],
    ['hours.json', hours],
    ['settings.json', settings],
    ['network.json', network],
    ['network-lists.json', networkLists],
    ['network-plan.json', plan],
    ['network-paired.json', paired],
    ['chat.json', chat],
    ['chat-child.json', chat],
    ['chat-delivery.json', receipt],
    ['run.json', runDetail],
    ['run-log.json', runLog],
    ['run-diff.json', runDiff],
    ['run-turns.json', runTurns],
    ['drafts-none.json', drafts],
    ['drafts.json', drafts],
    ['cost.json', costs],
    ['sessions-ended.json', endedSessions],
    ['draft-set.json', v.object({ key: v.string() })],
    ['run-turns-working.json', runTurns],
    ['run-finished.json', finished],
    ['run-conflicting.json', v.object({ error: v.string(), ...finished.entries })],
    ['run-said.json', said],
    ['models.json', v.object({ agents: v.array(models) })],
    ['usage.json', v.object({ agents: v.array(usage) })],
    ['approval.json', approval],
    ['approval-late.json', v.object({ error: v.string(), approval })],
    ['approvals.json', v.object({ approvals: v.array(approval) })],
    ['rules.json', v.object({ rules: v.array(rule) })],
    ['rule-taken.json', v.object({ rule, asked: v.array(v.string()), handed: v.array(v.string()) })],
    ['questions.json', v.object({ questions: v.array(question) })],
    ['question.json', question],
    ['question-late.json', v.object({ error: v.string(), question })],
    ['sent.json', sent],
    ['storage.json', report],
    ['error.json', v.object({ error: v.pipe(v.string(), v.nonEmpty()) })],
  ])('%s', (file, schema) => {
    const golden = join(import.meta.dirname, '../../../backend/doors/dashboard/testdata', file);
    const answer: unknown = JSON.parse(readFileSync(golden, 'utf8'));
    const { issues } = v.safeParse(schema as v.GenericSchema, answer);
    expect(issues?.map((i) => `${v.getDotPath(i) ?? ''}: ${i.message}`)).toBeUndefined();
  });
});
