// The dashboard's HTTP interface, typed. Every time is an integer in epoch
// milliseconds. Identity is the cookie; the page holds no secret.

export type Step = 'accepted' | 'durable' | 'woken' | 'handed' | 'consumed' | 'answered';
/** How far a delivery has come. 'expired' left the row of steps for good. */
export type Stage = Step | 'expired';

/** Which way a step was reached; '' where nobody knows. */
export type Via =
  | ''
  | 'hook'
  | 'wake-hook'
  | 'channel'
  | 'mod'
  | 'plugin'
  | 'tool'
  | 'queue'
  | 'queue-unclear'
  | 'activity'
  | 'prompt'
  | 'transcript'
  | 'reply';

export interface DeliveryStep {
  stage: Step;
  at: number | null;
  via: Via;
  /** What proved the step, in words for people: the rules ask `via`. */
  evidence: string;
  /** False where this recipient's kind can never show the step. */
  possible: boolean;
}

export interface Delivery {
  id: string;
  name: string;
  agent: string;
  stage: Stage;
  /** The present truth in plain words, or ''. */
  note: string;
  stages: DeliveryStep[];
}

export interface Message {
  id: string;
  from_name: string;
  from_agent: string;
  to_target: string;
  recipients: string;
  body: string;
  created_at: number;
  hop: number;
  reply_to: string | null;
  conversation_id: string;
  kind: 'message' | 'decision' | 'owner';
  state: Stage;
  deliveries: Delivery[];
}

export interface Child {
  id: string;
  title: string;
  state: string;
}

export interface Peer {
  id: string;
  name: string;
  agent: string;
  cwd: string;
  state: 'busy' | 'idle';
  sessionId: string | null;
  since: number;
  children: Child[];
  autoWake: boolean;
  wakeOnDirect: boolean;
  unread: number;
  transport: string;
  /** What mail can do while it is idle: start a turn, at once or within seconds, fail as it did last time, or wait for the next turn. */
  wake: 'open' | 'slow' | 'failed' | 'none';
  /** Both in a sentence, and the problem. */
  detail: string;
  /** The version of its agent CLI on this PC and those that Bridge was tried with, in words. */
  cli: string;
  /** What is wrong with its agent CLI, '' when nothing is. */
  problem: string;
  reach: Reach;
}

/** How words come to a session, in sentences to be shown as they are. */
export interface Reach {
  /** How the owner's words reach it. */
  owner: string;
  /** Which mail may start a turn while it is idle. */
  wokenBy: string;
  /** What keeps mail from its best way, '' where nothing does; the peer's detail tells more. */
  obstacle: string;
  /** The same of its native children. */
  child: {
    /** Words may go to the child itself. */
    direct: boolean;
    /** What the owner cannot do with one, in a few words and in a sentence. */
    brief: string;
    limit: string;
    /** How words about or to one travel. */
    hint: string;
  };
}

/** The last doctor report in numbers; `ok` is null while there was none. */
export interface StorageSummary {
  ok: boolean | null;
  errors: number;
  warnings: number;
  lastBackup: number | null;
}

/** What one session has left unread for too long, by the server's rule. */
export interface Overdue {
  /** The session's. */
  id: string;
  name: string;
  messages: number;
  /** The id of the message that waits longest, and when it came. */
  oldest: string;
  since: number;
}

export interface State {
  revision: number;
  /** `home` is the folder where the data lives, or ''. */
  instance: { name: string; version: string; home: string };
  broker: { state: 'live' | 'offline'; host: string; pid: number | null };
  peers: Peer[];
  messages: Message[];
  /** Who waits longest first. */
  overdue: Overdue[];
  /** How many messages the hour before `at` brought, also those that `messages` does not hold. */
  lastHour: { messages: number; at: number };
  storage: StorageSummary;
}

export type Scope = 'all' | { project: string } | { sessions: string[] };

export interface Decision {
  id: string;
  topic: string;
  text: string;
  scope: Scope;
  author: { id: string; name: string; agent: string };
  createdAt: number;
  sourceMessageId: string | null;
  supersedes: string | null;
  current: boolean;
}

/** A stored decision that cannot be read, so that nobody is told of it. */
export interface UnreadableDecision {
  id: string;
  topic: string;
  /** Continues a sentence about it. */
  why: string;
  /** A newer release may have written it. */
  newer: boolean;
}

/** `unreadable` is left out where there are none. */
export interface Decisions {
  decisions: Decision[];
  unreadable?: UnreadableDecision[];
}

export interface AgentFound {
  kind: string;
  found: boolean;
  path: string;
  version: string;
  connected: boolean;
  detail: string;
  /** Why this version is not connected, or ''. */
  refused: string;
  /** What of a connected one is not in place, each a sentence. */
  missing: string[];
}

export interface Agents {
  agents: AgentFound[];
  /** Connects them from a terminal. */
  command: string;
  /** Why none can be connected from the page, or ''. */
  refused: string;
}

/** What connecting or disconnecting an agent changes, or has changed. */
export interface AgentChange {
  kind: string;
  done: boolean;
  /** Names exactly this change; consent goes to it. */
  digest: string;
  edits: { path: string; verb: 'makes' | 'changes' | 'removes'; adds: string; diff: string[] }[];
  notes: string[];
}

export interface ChatResult {
  state: 'queued' | 'delivered' | 'not-supported' | 'unconfirmed';
  transport: string;
  receipt: string | null;
  detail: string;
}

export interface ChatDelivery {
  id: string;
  state: ChatResult['state'];
  transport: string;
  updatedAt: number;
}

/** For whom the owner's words are within a session: a native child, or its parent about it. */
export interface ChildTarget {
  child: string;
  target?: 'parent';
}

export interface Finding {
  severity: 'error' | 'warning';
  code: string;
  /** Within the home. */
  path: string;
  detail: string;
  /** `doctor --fix` mends it. */
  fixable: boolean;
}

export interface DoctorReport {
  checkedAt: number;
  /** No finding is an error. */
  ok: boolean;
  schema: { path: string; actual: number; expected: number }[];
  findings: Finding[];
  sizes: { path: string; bytes: number }[];
  totalBytes: number;
  /** Published sets, the newest first. */
  backups: { path: string; createdAt: number }[];
}

/** The record of one drill: that a snapshot could be restored, or why not. */
export interface Proof {
  at: number;
  snapshot: string;
  ok: boolean;
  /** What was proven or what failed, in words. */
  detail: string;
  files: number;
  rows: number;
}

/** How much the home took at one time: in all, and by the file or folder right in it. */
export interface SizePoint {
  at: number;
  total: number;
  parts: Record<string, number>;
}

export type WorkAction = 'backup' | 'drill' | 'check' | 'archive' | 'fix' | 'restore' | 'merge';

/** One piece of maintenance that the owner asked for. */
export interface Work {
  action: WorkAction;
  state: 'running' | 'done' | 'failed';
  began: number;
  ended: number | null;
  /** How far a running one is: of `all` bytes or rows, 0 where that is not known. */
  step: string;
  done: number;
  all: number;
  /** What came of it, in a sentence. */
  result: string;
}

/** What can be asked for, and exactly what it would do. */
export interface Offer {
  action: WorkAction;
  explains: string;
  consent: boolean;
  /** Why it cannot be done from the page, or ''. */
  refused: string;
  command: string;
}

export interface Works {
  running: Work | null;
  /** Since this broker started, the newest first. */
  ended: Work[];
  offers: Offer[];
  /** What to do about a finding, by its code. */
  hints: Record<string, string>;
}

/** config.json, as far as the page changes it. */
export interface Settings {
  /** 0 picks a free one. */
  port: number;
  autoWake: boolean;
  wakeOnDirect: boolean;
  desktop: { notifications: boolean };
  claude: { statusLine: boolean };
  /** Whether the desktop app starts at login; `why` it cannot, "" where it can. Null where that app does not serve the page. */
  login: { on: boolean; why: string } | null;
  /** Where this page is served now; another port counts from the next start. */
  servedPort: number;
}

/** What may be left out stays. */
export type SettingsChange = Partial<Omit<Settings, 'servedPort' | 'login'> & { login: boolean }>;

/** A piece of others' work inside the product; `text` is its place among the texts. */
export interface Licensed {
  name: string;
  version: string;
  licence: string;
  text: number;
}

export interface Licences {
  go: Licensed[];
  page: Licensed[];
  texts: string[];
}

/** A message of any store, as the archive keeps it. */
export type ArchiveMessage = Pick<
  Message,
  'id' | 'from_name' | 'from_agent' | 'to_target' | 'recipients' | 'body' | 'created_at' | 'hop' | 'reply_to'
>;

/** One hit of the full-text search. Target and recipients are a message's, topic and current a decision's. */
export interface Hit {
  kind: 'message' | 'decision';
  id: string;
  at: number;
  author_name: string;
  author_agent: string;
  to_target: string;
  recipients: string;
  topic: string;
  current: boolean;
  /** Plain text in pieces; `hit` ones are what was looked for. */
  snippet: { text: string; hit: boolean }[];
  /** Within the page, as "#/decisions/release". */
  link: string;
}

export interface SendResult {
  id: string;
  conversationId: string;
  recipients: { name: string; online: boolean; wake: boolean }[];
}

/** The server could not be reached at all. */
export class Unreachable extends Error {}
/** The server knows us not (any more): the launch link must be opened again. */
export class Refused extends Error {}
/** The server answered with an error; the message is its sentence for people. */
export class Failed extends Error {}

async function call<T>(path: string, init?: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { cache: 'no-store', ...init });
  } catch {
    throw new Unreachable('Bridge does not answer.');
  }
  if (response.ok) return (await response.json()) as T;
  const sentence = await errorSentence(response);
  throw response.status === 403 ? new Refused(sentence) : new Failed(sentence);
}

async function errorSentence(response: Response): Promise<string> {
  const fallback = `The server answered ${response.status}.`;
  try {
    const body = (await response.json()) as { error?: unknown };
    return typeof body.error === 'string' && body.error !== '' ? body.error : fallback;
  } catch {
    return fallback;
  }
}

function post<T>(path: string, body: unknown, method = 'POST'): Promise<T> {
  return call<T>(path, {
    method,
    headers: { 'content-type': 'application/json', 'x-bridge': '1' },
    body: JSON.stringify(body),
  });
}

const encode = encodeURIComponent;

export const api = {
  state: () => call<State>('/api/state'),
  agents: () => call<Agents>('/api/agents'),
  /** Without a digest it shows what would be changed; with one it is consent to exactly that. */
  changeAgent: (kind: string, change: 'connect' | 'disconnect', digest?: string) =>
    post<AgentChange>(
      `/api/agents/${encode(kind)}/${change}`,
      digest === undefined ? {} : { consent: true, digest },
    ),
  settings: () => call<Settings>('/api/settings'),
  /** Answers with all settings after the change. */
  changeSettings: (change: SettingsChange) => post<Settings>('/api/settings', change, 'PUT'),
  licences: () => call<Licences>('/assets/licences.json'),
  /** One session's messages, newest first, those before the given time only. */
  messages: (peer: string, limit: number, before?: number) =>
    call<{ messages: Message[] }>(
      `/api/messages?peer=${encode(peer)}&limit=${limit}${before === undefined ? '' : `&before=${before}`}`,
    ),
  /** One message of any store, archived ones too. */
  message: (id: string) => call<Message>(`/api/messages/${encode(id)}`),
  decisions: (query: string) => call<Decisions>(`/api/decisions${query === '' ? '' : `?q=${encode(query)}`}`),
  /** The messages that told sessions of a topic's revisions, newest first. */
  notices: (topic: string) => call<{ messages: Message[] }>(`/api/decisions/${encode(topic)}/notices`),
  history: (topic: string) => call<Decisions & { topic: string }>(`/api/decisions/${encode(topic)}/history`),
  /** To a session, live or away; with a child's target to that child or about it to its parent. */
  writeToSession: (name: string, body: string, child?: ChildTarget) =>
    post<ChatResult>(`/api/sessions/${encode(name)}/message`, { body, ...child }),
  send: (to: string, body: string) => post<SendResult>('/api/messages', { to, body }),
  chatDelivery: (id: string) => call<ChatDelivery>(`/api/chat-delivery/${encode(id)}`),
  storage: () => call<DoctorReport>('/api/storage'),
  /** The drills, the newest first. */
  drills: () => call<{ drills: Proof[] }>('/api/storage/drills'),
  /** One point a day, the oldest first. */
  sizes: () => call<{ points: SizePoint[] }>('/api/storage/sizes'),
  works: () => call<Works>('/api/storage/work'),
  startWork: (action: WorkAction, consent: boolean) => post<Works>('/api/storage/work', { action, consent }),
  /**
   * Messages and decisions by their words, the best first; quotes hold words together. `behind` counts rows that were
   * stored a moment ago and are not searched yet; `next` is the cursor of the next page, '' after the last. Fails with a sentence while there is no index.
   */
  search: (words: string, options: { kind?: Hit['kind']; limit?: number; cursor?: string } = {}) => {
    const params = new URLSearchParams({ q: words });
    for (const [name, value] of Object.entries(options)) params.set(name, String(value));
    return call<{ results: Hit[]; behind: number; next: string }>(`/api/search?${params}`);
  },
  /** Messages of all stores that hold the text literally, newest first, those before the given time only. */
  searchArchive: (query: string, limit: number, before?: number) =>
    call<{ messages: ArchiveMessage[] }>(
      `/api/archive/messages?query=${encode(query)}&limit=${limit}${before === undefined ? '' : `&before=${before}`}`,
    ),
};
