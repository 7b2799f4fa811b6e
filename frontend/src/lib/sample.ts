// Small complete values for unit tests; each test names only what it is about.

import type { Decision, Delivery, Message, Overdue, Peer, Stage, State, Step } from './api';

const STEPS: Step[] = ['accepted', 'durable', 'woken', 'handed', 'consumed', 'answered'];

/** A delivery whose steps up to its stage happened, one second apart from `at`. */
export function delivery(stage: Stage, over: Partial<Delivery> = {}, at = 1000): Delivery {
  const reached = stage === 'expired' ? 1 : STEPS.indexOf(stage);
  return {
    id: 'p-1',
    name: 'codex-web',
    agent: 'codex',
    stage,
    note: '',
    stages: STEPS.map((step, i) => ({
      stage: step,
      at: i <= reached ? at + i * 1000 : null,
      via: '',
      evidence: '',
      possible: true,
    })),
    ...over,
  };
}

export function message(over: Partial<Message> = {}): Message {
  return {
    id: 'm-1',
    from_name: 'claude-api',
    from_agent: 'claude',
    to_target: 'codex-web',
    recipients: 'codex-web',
    body: 'hello',
    created_at: 1000,
    hop: 0,
    reply_to: null,
    conversation_id: 'c-1',
    kind: 'message',
    state: 'durable',
    deliveries: [delivery('durable')],
    ...over,
  };
}

export function peer(over: Partial<Peer> = {}): Peer {
  return {
    id: 'p-1',
    name: 'codex-web',
    agent: 'codex',
    cwd: '/home/anna/web',
    state: 'idle',
    sessionId: null,
    since: 0,
    children: [],
    autoWake: true,
    wakeOnDirect: true,
    unread: 0,
    transport: 'hooks',
    wake: 'open',
    detail: '',
    cli: '',
    problem: '',
    reach: { owner: '', wokenBy: '', obstacle: '', child: { direct: true, brief: '', limit: '', hint: '' } },
    ...over,
  };
}

export function overdue(over: Partial<Overdue> = {}): Overdue {
  return { id: 'p-1', name: 'codex-web', messages: 1, oldest: 'm-1', since: 0, ...over };
}

export function state(over: Partial<State> = {}): State {
  return {
    revision: 1,
    instance: { name: 'test', version: '0', home: '/home/anna/.bridge' },
    broker: { state: 'live', host: 'serve', pid: 1 },
    peers: [],
    messages: [],
    overdue: [],
    lastHour: { messages: 0, at: 0 },
    storage: { ok: null, errors: 0, warnings: 0, lastBackup: null },
    ...over,
  };
}

export function decision(over: Partial<Decision> = {}): Decision {
  return {
    id: 'd-1',
    topic: 'database',
    text: 'PostgreSQL',
    scope: 'all',
    author: { id: 'p-1', name: 'claude-api', agent: 'claude' },
    createdAt: 1000,
    sourceMessageId: null,
    supersedes: null,
    current: true,
    ...over,
  };
}
