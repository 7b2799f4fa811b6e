// Small complete values for unit tests; each test names only what it is about.

import type {
  Approval,
  Decision,
  Delivery,
  Message,
  Need,
  Peer,
  Question,
  Run,
  Stage,
  State,
  Step,
} from './api';

const STEPS: Step[] = ['accepted', 'durable', 'woken', 'handed', 'consumed', 'answered'];

/** A delivery whose steps up to its stage happened, one second apart from `at`. */
export function delivery(stage: Stage, over: Partial<Delivery> = {}, at = 1000): Delivery {
  const reached = Math.max(stage === 'accepted' ? 0 : 1, STEPS.indexOf(stage as Step));
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
    unknownSince: 0,
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

export function need(over: Partial<Need> = {}): Need {
  return {
    id: 'mail:codex-web:m-1',
    sort: 'mail',
    title: 'codex-web has not read 1 message',
    detail: 'It is idle; give it a turn, and it reads.',
    since: 0,
    until: null,
    place: '/src/web',
    link: '#/sessions/codex-web?m=m-1',
    urgency: 'info',
    by: '',
    news: true,
    ...over,
  };
}

export function state(over: Partial<State> = {}): State {
  return {
    tag: '',
    revision: 1,
    instance: { name: 'test', version: '0', home: '/home/anna/.bridge' },
    broker: { state: 'live', host: 'serve', pid: 1 },
    peers: [],
    messages: [],
    lastHour: { messages: 0, at: 0 },
    runs: [],
    worktrees: { count: 0, bytes: 0 },
    approvals: [],
    needs: [],
    prompting: { answerPrompts: 'off', away: false },
    noticesFrom: 0,
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

export function run(over: Partial<Run> = {}): Run {
  return {
    run: 'codex-job-0a1b2c3d',
    job: 'codex-job-0a1b2c3d',
    by: 'claude-api',
    agent: 'codex',
    called: over.agent ?? 'codex',
    title: 'Fix the parser',
    status: 'running',
    wait: null,
    ended: '',
    model: '',
    effort: '',
    access: 'read',
    layer: 'own',
    progress: { percent: null, etaMinutes: null, note: '' },
    step: '',
    workdir: '/home/anna/web',
    branch: '',
    session: 's-1',
    tokens: 0,
    costUsd: 0,
    startedAt: 1000,
    endedAt: null,
    worktree: null,
    ...over,
  };
}

export function approval(over: Partial<Approval> = {}): Approval {
  return {
    id: 'a-1',
    job: 'codex-job-0a1b2c3d',
    session: 's-1',
    by: 'claude-api',
    kind: 'command',
    what: 'shell',
    detail: 'rm -rf build',
    cwd: '/home/anna/web',
    why: '',
    state: 'asked',
    askedAt: 1000,
    expiresAt: 601_000,
    answeredAt: null,
    answeredBy: '',
    decision: '',
    reason: '',
    ...over,
  };
}

export function question(over: Partial<Question> = {}): Question {
  return {
    id: 'q-1',
    by: 'codex-web',
    agent: 'codex',
    project: '/home/anna/web',
    title: 'Which database?',
    context: '',
    topic: '',
    options: [],
    blocking: false,
    state: 'open',
    askedAt: 1000,
    endedAt: null,
    answer: null,
    ...over,
  };
}
