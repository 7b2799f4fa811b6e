// The dashboard's HTTP interface, typed. Every time is an integer in epoch
// milliseconds. Identity is the cookie; the page holds no secret.

import type { SharedDraft } from './drafts';

export type Step = 'accepted' | 'durable' | 'woken' | 'handed' | 'consumed' | 'answered';
/**
 * How far a delivery has come. 'expired' left the row of steps for good. On its way to another PC one is 'at-hub' when
 * the team's hub has stored it and that PC has not, has 'arrived' when that PC has, or was 'refused' by it for good.
 */
export type Stage = Step | 'expired' | 'at-hub' | 'arrived' | 'refused';

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
  /** Since when `state` is not known; 0 where it is. */
  unknownSince: number;
  children: Child[];
  autoWake: boolean;
  wakeOnDirect: boolean;
  /** Null where it cannot be read. */
  unread: number | null;
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

/** What a need is about. */
export type NeedSort =
  | 'offline'
  | 'storage'
  | 'approval'
  | 'question'
  | 'job-asks'
  | 'job-ended'
  | 'job-review'
  | 'exchange'
  | 'mail'
  | 'expired'
  | 'agent'
  | 'routes';

/** How soon a need needs the owner: somebody waits or it ends by itself, it moves work on, it is news. */
export type Urgency = 'now' | 'next' | 'info';

/** One thing that needs the owner, by the server's rule: the tray and `bridge needs` list the same. */
export interface Need {
  /** "<sort>:<id of what it is about>". */
  id: string;
  sort: NeedSort;
  title: string;
  /** What exactly, never cut. */
  detail: string;
  since: number;
  /** When it will be over by itself. */
  until: number | null;
  /** The folder that it is about, or ''. */
  place: string;
  /** Where on the page it is dealt with, as "#/runs". */
  link: string;
  urgency: Urgency;
  /** The session that waits for the owner, or ''. */
  by: string;
  /** It can be put away. */
  news: boolean;
  /** The two sessions of a need of that sort. */
  exchange?: Exchange | undefined;
}

/** Two sessions that only write each other, or whose messages to each other the owner paused. */
export interface Exchange {
  a: { id: string; name: string };
  b: { id: string; name: string };
  paused: boolean;
}

/** What a session asks its owner. */
export interface Question {
  id: string;
  by: string;
  agent: string;
  /** The folder of the session. */
  project: string;
  title: string;
  context: string;
  topic: string;
  /** None for an answer in words. */
  options: { id: string; label: string; consequence: string }[];
  /** The session waits for the answer. */
  blocking: boolean;
  state: 'open' | 'answered' | 'cancelled' | 'superseded';
  askedAt: number;
  endedAt: number | null;
  /** `receipt` is the message that takes it to the session, '' while it waits to be sent. */
  answer: { option: string; text: string; words: string; pinned: boolean; receipt: string } | null;
}

/** What may be left out: an answer needs an option or text. */
export interface QuestionAnswer {
  option?: string;
  text?: string;
  pin?: boolean;
}

/** Where a delegated job is. */
export type RunStatus =
  | 'queued'
  | 'starting'
  | 'running'
  | 'waiting'
  | 'finished'
  | 'failed'
  | 'refused'
  | 'limit'
  | 'cancelled'
  | 'interrupted';

/** What a waiting job waits for; all but a retry wait for somebody's word. */
export type WaitFor = 'approval' | 'budget' | 'timeout' | 'repeat' | 'silence' | 'retry';

export type Access = 'read' | 'ask' | 'edit';

/** A delegated job. */
export interface Run {
  run: string;
  job: string;
  /** Who asked for it: a session, or the job above. */
  by: string;
  agent: string;
  /** What its agent is called: the kind, or the name that its owner gave one of kind acp. */
  called: string;
  title: string;
  status: RunStatus;
  /** For what a waiting one waits; null for every other. `until` is left out where it is not known. */
  wait: { for: WaitFor; until?: number } | null;
  /** Why its last run ended, in a word; '' while it goes on. */
  ended: string;
  model: string;
  effort: string;
  access: Access;
  /** What holds below the agent's own rules: sandbox, own, none, or '' while nobody knows. */
  layer: string;
  progress: { percent: number | null; etaMinutes: number | null; note: string };
  /** What it does now, '' between two steps. */
  step: string;
  workdir: string;
  branch: string;
  session: string;
  tokens: number;
  costUsd: number;
  /** Null while it stands in line. */
  startedAt: number | null;
  /** Null while it goes on. */
  endedAt: number | null;
  /** Where it works, for one on a paired PC. */
  remote?: { host: string; name: string };
  /** Why this may not be the present state of one on a paired PC. */
  doubt?: string;
  /** Null without one of its own. */
  worktree: Worktree | null;
}

/** The checkout of a worktree job. */
export interface Worktree {
  path: string;
  /** Its main checkout, where the work is landed. */
  repository: string;
  /** What it holds, or what it gave back. */
  bytes: number;
  /** Why it was not taken away, '' before that was looked at. */
  stays: string;
  /** When it was taken away; its branch stays. */
  reclaimedAt: number | null;
  /** What the owner did last with the work. */
  landing: Landing | null;
  /** The finish that an undo takes back. */
  landed: Landing | null;
}

/** A finish: "staged" was broken off and stands in the main checkout, not committed. */
export interface Landing {
  action: FinishAction;
  state: 'begun' | 'done' | 'staged' | 'failed';
  at: number;
  commit?: string;
  /** The commit of the job that was landed. */
  head?: string;
  /** The branch of the main checkout. */
  on?: string;
}

/** What the runner saw itself, beside what the agent says. */
export interface Evidence {
  /** Commits; '' outside of a repository. */
  base: string;
  head: string;
  files: { path: string; from?: string; status: string; added: number; removed: number }[];
  /** `exit` is null where the agent does not tell. */
  commands: { command: string; exit: number | null }[];
  tokens: number;
  costUsd: number;
  durationMs: number;
  /** Why it ended, in a word. */
  ended: string;
  layer: string;
}

/** A job with what it was asked and what came of its last run that has ended. */
export interface RunDetail extends Run {
  prompt: string;
  result: RunResult | null;
}

export interface RunResult {
  status: RunStatus;
  /** What its agent says, whole. */
  text: string;
  /** Why there is no answer, or why it cannot be read; '' where there is one. */
  error: string;
  at: number | null;
  evidence: Evidence;
  /** The names of what its environment had of its owner's. */
  variables: string[];
}

/** One turn of a job: the words that began it and its answer. */
export interface RunTurn {
  /** From 1. */
  run: number;
  /** '' where it is not known. */
  message: string;
  /** The names of the message's authors, "you" the owner; none where they are not known. */
  by: string[];
  /** '' before its end. */
  status: RunStatus | '';
  ended: string;
  /** At most 64 KiB of the answer. */
  text: string;
  /** Why there is no answer, or why it cannot be read; '' where there is one. */
  error: string;
  at: number | null;
  durationMs: number;
  tokens: number;
  costUsd: number;
}

/** What became of the owner's words to a job; `delivery` is null where there were none. */
export interface Said {
  job: string;
  status: RunStatus;
  delivery: 'running' | 'continued' | 'queued' | 'applied' | null;
}

/** A session that is not connected now. */
export interface EndedSession {
  name: string;
  agent: string;
  seenAt: number;
}

/** What may be left out stays. */
export interface JobChange {
  title?: string;
  model?: string;
  effort?: string;
  access?: Access;
}

/** What one agent CLI tells of its models. */
export interface AgentModels {
  agent: string;
  /** When it was asked. */
  asOf: number;
  /** `id` is what the CLI wants to hear; a name or efforts that it does not tell are empty. */
  models: { id: string; name: string; efforts: string[]; default: boolean }[];
  /** Why there is nothing, or not all. */
  note: string;
}

/** What one agent CLI tells of the limits of its account. */
export interface AgentUsage {
  agent: string;
  /** When it was asked. */
  asOf: number;
  plan: string;
  /** `resetsAt` is null where the CLI does not say it. */
  limits: { name: string; usedPercent: number; resetsAt: number | null }[];
  /** Why there is nothing. */
  note: string;
}

export type ApprovalState = 'asked' | 'answered' | 'delivered' | 'applied' | 'expired' | 'withdrawn';
export type Verdict = 'allow' | 'deny';

/** How a prompt of a session ended without an answer from here. */
export type Elsewhere = 'allowed' | 'refused' | 'answered' | 'stopped' | 'gone' | 'unheld' | 'unclear';

/** A question of a job, or the permission prompt of an interactive session, whose job is ''. */
export interface Approval {
  id: string;
  job: string;
  /** Of a prompt the session's name. */
  session: string;
  /** Whom it is put to. */
  by: string;
  kind: string;
  /** The tool, as its agent names it. */
  what: string;
  /** Exactly what would be done, never cut. */
  detail: string;
  cwd: string;
  /** What the agent says of it, or ''. */
  why: string;
  state: ApprovalState;
  askedAt: number;
  /** Null for a prompt of a session: its terminal asks on. */
  expiresAt: number | null;
  /** Null while nobody has. */
  answeredAt: number | null;
  answeredBy: string;
  decision: Verdict | '';
  reason: string;
  /** Which job on a paired PC asks. */
  remote?: { host: string; name: string };
  elsewhere?: Elsewhere;
  /** Why it cannot be answered here. */
  onlyTold?: string;
  /** What an answer does besides. */
  caution?: string;
  /** What a session's model asks in its own words, and what was chosen, a list for each. */
  choices?: Choice[];
  answers?: string[][];
  /** While it is open: what "from now on" may mean. */
  fromNowOn?: FromNowOn;
}

/** One question of a model's own. */
export interface Choice {
  question: string;
  header?: string;
  /** None for an answer in words. */
  options: { label: string; description?: string; preview?: string }[];
  /** More than one may be chosen. */
  several?: boolean;
  /** Words of one's own are an answer, too. */
  words?: boolean;
}

/** What a standing rule may be made of. */
export interface FromNowOn {
  exact: boolean;
  /** The words of which a prefix may be made; none where the whole alone can be allowed. */
  words: string[];
  /** How many of them it needs. */
  least: number;
  folder: string;
  /** Why there is no rule, or no prefix; else ''. */
  why: string;
}

/** What the owner chose beside "allow". */
export interface RuleWish {
  match: 'exact' | 'prefix';
  words?: string[];
  folder: 'this' | 'all';
  until?: number;
}

/** A standing rule. */
export interface Rule {
  id: string;
  agent: string;
  kind: string;
  tool: string;
  match: 'exact' | 'prefix';
  /** Of an exact one: all that it allows. */
  text: string;
  words: string[];
  /** '' is every folder. */
  folder: string;
  says: string;
  until: number | null;
  madeAt: number;
  uses: number;
  lastUse: number | null;
  /** The job or session of the last use. */
  lastFor: string;
}

export interface TakenBack {
  rule: Rule;
  /** Approvals that are asked again. */
  asked: string[];
  /** Approvals whose agent may have acted already. */
  handed: string[];
}

/** When prompts of sessions can be answered here. */
export type AnswerPrompts = 'off' | 'away' | 'always';

export interface Prompting {
  answerPrompts: AnswerPrompts;
  /** Away mode is on: prompts are kept for the page. */
  away: boolean;
}

export interface FileDiff {
  path: string;
  /** Of a rename, else ''. */
  from: string;
  status: string;
  added: number;
  removed: number;
  binary: boolean;
  /** Unified, '' where it cannot be shown. */
  patch: string;
  /** The patch is too long to be shown. */
  cut: boolean;
}

/** What a job changed, against its own start. */
export interface Diff {
  base: string;
  head: string;
  files: FileDiff[];
}

export interface LineComment {
  path: string;
  line: number;
  side: 'old' | 'new';
  body: string;
}

export type FinishAction = 'apply' | 'squash' | 'merge' | 'keep' | 'discard' | 'undo';

export interface Finished {
  action: FinishAction;
  /** Paths that do not fit. */
  conflicts: string[];
  done: boolean;
  /** On the branch of the main checkout; of keep and discard the job's own, or ''. */
  commit: string;
  /** The job's, after it. */
  branch: string;
  /** The main one. */
  checkout: string;
}

export interface State {
  revision: number;
  /** Identifies this state when the next one is asked for; '' if its changes cannot be. */
  tag: string;
  /** `home` is the folder where the data lives, or ''. */
  instance: { name: string; version: string; home: string };
  broker: { state: 'live' | 'offline'; host: string; pid: number | null };
  /** What could not be read for this state, as sentences; absent where all could be. */
  unreadable?: string[];
  peers: Peer[];
  messages: Message[];
  /** How many messages the hour before `at` brought, also those that `messages` does not hold; null where that cannot be read. */
  lastHour: { messages: number | null; at: number };
  runs: Run[];
  /** Checkouts of jobs that are there. */
  worktrees: { count: number; bytes: number };
  approvals: Approval[];
  /** Oldest first. */
  needs: Need[];
  prompting: Prompting;
  /** When a page in the background may show notices: now, or after the quiet hours; 0 if they are off. */
  noticesFrom: number;
  storage: StorageSummary;
}

/** The state, or the changes of the one whose tag was sent: what is the same is only its id. */
export type StateAnswer = Omit<State, 'messages' | 'peers'> & {
  messages: (Message | string)[];
  peers: (Peer | string)[];
};

/** A time; `to` is null while it goes on. */
export interface Span {
  from: number;
  to: number | null;
}

/** How far a message came to one recipient. */
export interface Way {
  name: string;
  /** Two are of a message to a paired PC. */
  stage: Stage | 'arrived' | 'refused';
  /** When it woke the session. */
  woken: number | null;
  read: number | null;
}

/** A message in short. */
export interface ActivityMark {
  id: string;
  from: string;
  /** Of the sender. */
  agent: string;
  to: string;
  kind: Message['kind'];
  at: number;
  /** Its beginning. */
  words: string;
  ways: Way[];
}

/** What happened since a time. */
export interface Activity {
  since: number;
  at: number;
  /** From when on it is known who was at work; null without a broker. */
  began: number | null;
  /** When sessions were at work, by their id, the oldest first. */
  work: Record<string, Span[]>;
  /** Newest first. */
  messages: ActivityMark[];
  /** False where older messages are left out, because there were too many. */
  complete: boolean;
}

/** What an hour brought. */
export interface Hour {
  from: number;
  messages: number;
  wakes: number;
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
  /** It is in force. */
  current: boolean;
  /** It withdraws what was in force on its topic; left out of all others. */
  withdrawn?: boolean;
}

/** What the owner pins. With supersedes only where that is still in force. */
export interface Pin {
  topic: string;
  text: string;
  scope: Scope;
  supersedes: string;
}

/** A decision as it was recorded, and who is told of it. */
export interface Decided {
  decision: Decision;
  deliveredTo: string[];
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

/** What there is none of is left out. */
export interface Decisions {
  decisions: Decision[];
  /** In a history: to each of the revisions that PCs of a team made at the same time, the next one of them. */
  atOnce?: Record<string, string>;
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
  /** Its sessions may start agents on this PC without a question. */
  jobs: boolean;
  /** What came of trying the routes into it; null for not tried. */
  proof: AgentProof | null;
}

/** What came of trying the routes into a version of an agent. */
export interface AgentProof {
  version: string;
  at: number;
  /** Why they could not be tried, or ''. */
  problem: string;
  /** A sentence for each broken route. */
  broken: string[];
}

/** A connected agent CLI. */
export interface AgentStanding {
  kind: string;
  /** Its sessions may start agents on this PC without a question. */
  jobs: boolean;
}

export interface Agents {
  agents: AgentFound[];
  /** Connects them from a terminal. */
  command: string;
  /** The folders of the PATH that were searched. */
  looked: string[];
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

/** Once a version, when the PC is not busy; or only by `bridge prove`. */
export type ProveMode = 'auto' | 'off';

/** config.json, as far as the page changes it. */
export interface Settings {
  /** 0 picks a free one. */
  port: number;
  autoWake: boolean;
  wakeOnDirect: boolean;
  desktop: {
    notifications: boolean;
    /** Hours of the day without a notice, as "22:00"; null for none. */
    quiet: { from: string; to: string } | null;
  };
  claude: { statusLine: boolean };
  /** How many messages two sessions may exchange before the owner is asked; 0 for any number. */
  mail: { exchange: number };
  /** Automatic backups of the messages. */
  backups: { auto: boolean; everyHours: number };
  answerPrompts: AnswerPrompts;
  /** Whether Bridge tries new versions of agents. */
  prove: ProveMode;
  /** Whether the desktop app starts at login; `why` it cannot, "" where it can. Null where that app does not serve the page. */
  login: { on: boolean; why: string } | null;
  /** Where this page is served now; another port counts from the next start. */
  servedPort: number;
}

/** What may be left out stays. */
export type SettingsChange = Partial<
  Omit<Settings, 'servedPort' | 'login' | 'desktop' | 'backups'> & {
    login: boolean;
    backups: { auto: boolean };
    /** Two empty times are none. */
    desktop: { notifications?: boolean; quiet?: { from: string; to: string } };
  }
>;

/** A PC for people; the fingerprint is what they compare of its id. */
export interface PCName {
  name: string;
  id: string;
  fingerprint: string;
}

/** What config.json allows a PC; without links it is nothing yet. */
export interface PCAllowed {
  jobs: boolean;
  messages: boolean;
  decisions: boolean;
  dashboard: boolean;
  files: boolean;
}

export interface PairedPC extends PCName {
  up: boolean;
  /** Null while no link is up. */
  since: number | null;
  release: string;
  capabilities: string[];
  /** Why it has to be updated, a sentence, or ''. */
  update: string;
  /** Why the last connection attempt failed, or ''. */
  failed: string;
  /** By its own name, whatever its whole team may. */
  allowed: PCAllowed;
  /** What it may do here, a sentence. */
  may: string;
  /** It is of this PC's team. */
  member: boolean;
  /** It is paired with this PC. */
  paired: boolean;
  /** Another PC that had its name in the team before, and when this PC saw that. */
  before: { fingerprint: string; since: number } | null;
}

/** What another PC pairs by. */
export interface Invitation {
  id: string;
  state: 'open' | 'used' | 'burnt' | 'expired';
  /** '' unless it is open. */
  code: string;
  addresses: string[];
  /** No other PC can reach these. */
  localOnly: boolean;
  expiresAt: number;
  wrongCodes: number;
  /** So many wrong codes burn it. */
  burntAt: number;
  /** Who used it. */
  peer: PCName | null;
}

/** What config.json says about other PCs, as far as it is the same for all of them. */
export interface NetworkPolicy {
  /** Names the file as it was read: a change is one of exactly that. */
  revision: string;
  /** None is loopback only. */
  listen: string[];
  port: number;
  /** The addresses of this PC that it could listen at. */
  own: string[];
  jobsEnabled: boolean;
  allowRoots: { path: string; warning: string }[];
  agents: string[];
  /** The agents that could be allowed. */
  kinds: string[];
  maxAccess: 'read' | 'ask' | 'edit';
  /** Why no job starts for another PC at all, or ''. */
  jobsOff: string;
  /** Names that are allowed something and that no paired PC has. */
  unpaired: string[];
  /** Teams that share decisions as a whole and that this PC is not in. */
  otherTeams: string[];
}

export interface Network {
  name: string;
  id: string;
  fingerprint: string;
  enabled: boolean;
  listening: string[];
  /** Why no PC can connect, or ''. */
  failed: string;
  /** The last one, also when it is open no more. */
  invitation: Invitation | null;
  peers: PairedPC[];
  policy: NetworkPolicy;
  /** Null where this PC belongs to none. */
  team: Team | null;
}

/** The team that this PC belongs to; its PCs stand among the peers. */
export interface Team {
  /** '' where it cannot be read. */
  team: string;
  /** What the team calls this PC. */
  name: string;
  /** Of the hub. */
  id: string;
  fingerprint: string;
  /** The server is a NATS server of the team's own, and no hub. */
  own: boolean;
  up: boolean;
  /** Null while it is not up. */
  since: number | null;
  /** The hub's node that this PC talks to, or ''. */
  server: string;
  /** Why the hub is not reached, or ''. */
  failed: string;
  /** The whole team shares decisions. */
  decisions: boolean;
  /** What that means, a sentence. */
  may: string;
  /** PCs of the team that are not heard: each has the name of a pair. */
  unheard: string[];
  /** What whoever runs the hub sees, in sentences. */
  sees: string;
  /** Whether it can read what this PC says to another one, in sentences. */
  carried: string;
  /** config.json has this PC seal that. */
  seal: boolean;
  /** What came from the team and was not taken since then, the last first. */
  dropped: Dropped[];
  watched: number | null;
  /** Decisions of this PC that the hub, although it is reached, does not take: how many and why,
   *  a sentence without its end. */
  waits: { words: string; since: number } | null;
}

/** What came under one PC's name and was not taken for one reason. */
export interface Dropped {
  /** "3 × " can stand before it. */
  words: string;
  count: number;
  last: number;
  /** No right Bridge does that by itself. */
  hostile: boolean;
}

/** A session of a paired PC, by the name "<host>/<session>". */
export interface PCSession {
  name: string;
  agent: string;
  state: string;
  /** '' where its owner does not show it. */
  cwd: string;
  since: number;
}

/** A delegated job of a paired PC, by the name "<host>/<job>". */
export interface PCJob {
  name: string;
  agent: string;
  status: string;
  title: string;
  cwd: string;
  /** When it began; 0 while it waits. */
  since: number;
}

/** What a paired PC shows of itself, read-only. */
export interface PCList {
  name: string;
  id: string;
  /** Its sessions take messages from here. */
  messages: boolean;
  sessions: PCSession[];
  jobs: PCJob[];
  /** When it said so, or null for never. */
  asOf: number | null;
  /** Why there is nothing newer, or ''. */
  failed: string;
}

/** What is left out stays. */
export interface PolicyChange {
  enabled?: boolean;
  name?: string;
  listen?: string[];
  jobsEnabled?: boolean;
  allowRoots?: string[];
  agents?: string[];
  peers?: ({ id: string } & Partial<PCAllowed>)[];
  team?: { team: string; decisions?: boolean; seal?: boolean };
  forget?: string[];
}

/** What a change of the policy means in words, and the network after it. */
export interface NetworkPlan {
  saved: boolean;
  /** About this PC (''), a paired one or a team ("@" before its name). */
  changes: { name: string; before: string; after: string }[];
  warnings: string[];
  network: Network;
}

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

/**
 * One hit of the full-text search. Target and recipients are a message's, topic and current a decision's; of a run,
 * what was said in a delegated job, the author is the job and `said` tells who spoke.
 */
export interface Hit {
  kind: 'message' | 'decision' | 'run';
  id: string;
  at: number;
  author_name: string;
  author_agent: string;
  to_target: string;
  recipients: string;
  topic: string;
  current: boolean;
  /** What a line of a run is: prompt, message, text, call, question, answer or end. */
  said: string;
  /** Plain text in pieces; `hit` ones are what was looked for. */
  snippet: { text: string; hit: boolean }[];
  /** Within the page, as "#/decisions/release". */
  link: string;
}

/** What a search is limited to; times in epoch milliseconds. Without words it lists messages. */
export interface SearchOptions {
  kind?: Hit['kind'];
  from?: string;
  /** Inclusive. */
  after?: number;
  /** Exclusive. */
  before?: number;
  limit?: number;
  cursor?: string;
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
export class Failed extends Error {
  constructor(
    message: string,
    readonly status = 0,
    /** All of the answer, for those that carry more than the sentence. */
    readonly body: unknown = null,
  ) {
    super(message);
  }
}

async function call<T>(path: string, init?: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { cache: 'no-store', ...init });
  } catch {
    throw new Unreachable('Bridge does not answer.');
  }
  if (response.ok) return (await response.json()) as T;
  const body = (await response.json().catch(() => null)) as { error?: unknown } | null;
  const told = body?.error;
  const sentence = typeof told === 'string' && told !== '' ? told : `The server answered ${response.status}.`;
  throw response.status === 403 ? new Refused(sentence) : new Failed(sentence, response.status, body);
}

function post<T>(path: string, body: unknown, method = 'POST', keepalive = false): Promise<T> {
  return call<T>(path, {
    method,
    keepalive,
    headers: { 'content-type': 'application/json', 'x-bridge': '1' },
    body: JSON.stringify(body),
  });
}

const encode = encodeURIComponent;

/** Tokens by what Bridge put into a session. */
export interface Tokens {
  tools: number;
  notes: number;
  mail: number;
  notices: number;
  total: number;
}

/** What Bridge put into the sessions, as an estimate; the newest day first. */
export interface Costs {
  bytesPerToken: number;
  keptDays: number;
  sessions: {
    id: string;
    name: string;
    agent: string;
    total: Tokens;
    days: { day: string; tokens: Tokens }[];
  }[];
}

export const api = {
  costs: () => call<Costs>('/api/cost'),
  /** The whole state, or its changes since the one with that tag. */
  state: (since: string) =>
    call<StateAnswer>(`/api/state${since === '' ? '' : `?since=${encodeURIComponent(since)}`}`),
  /** Of the last eight hours at most. */
  activity: (since: number) => call<Activity>(`/api/activity?since=${since}`),
  /** The last 24, the oldest first; counted once a minute. */
  hours: () => call<{ hours: Hour[] }>('/api/activity/hours'),
  agents: () => call<Agents>('/api/agents'),
  /** Those that are connected; unlike `agents` it starts none of them. */
  agentsConnected: () => call<{ agents: AgentStanding[] }>('/api/agents/connected'),
  /** Without a digest it shows what would be changed; with one it is consent to exactly that. */
  changeAgent: (kind: string, change: 'connect' | 'disconnect', jobs?: boolean, digest?: string) =>
    post<AgentChange>(`/api/agents/${encode(kind)}/${change}`, {
      ...(jobs === undefined ? {} : { jobs }),
      ...(digest === undefined ? {} : { consent: true, digest }),
    }),
  settings: () => call<Settings>('/api/settings'),
  /** Answers with all settings after the change. */
  changeSettings: (change: SettingsChange) => post<Settings>('/api/settings', change, 'PUT'),
  network: () => call<Network>('/api/network'),
  /** Another PC can pair by the code of the answer. */
  networkLists: () => call<{ peers: PCList[] }>('/api/network/lists'),
  invite: () => post<Network>('/api/network/invite', {}),
  withdrawInvite: () => post<Network>('/api/network/invite', {}, 'DELETE'),
  /** The code goes in the body alone. */
  linkPC: (address: string, code: string) =>
    post<PCName & { may: string }>('/api/network/link', { address, code }),
  unpair: (id: string) => post<Network>(`/api/network/peers/${encode(id)}`, {}, 'DELETE'),
  /** Fails with status 409 where config.json is no longer of that revision. */
  changePolicy: (revision: string, change: PolicyChange, dryRun: boolean) =>
    post<NetworkPlan>('/api/network/policy', { revision, dryRun, ...change }, 'PUT'),
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
  pin: (pin: Pin) => post<Decided>('/api/decisions', pin),
  withdraw: (topic: string, withdrawal: { reason: string; supersedes: string }) =>
    post<Decided>(`/api/decisions/${encode(topic)}/withdraw`, withdrawal),
  notices: (topic: string) => call<{ messages: Message[] }>(`/api/decisions/${encode(topic)}/notices`),
  history: (topic: string) => call<Decisions & { topic: string }>(`/api/decisions/${encode(topic)}/history`),
  /** To a session, live or away; with a child's target to that child or about it to its parent. */
  writeToSession: (name: string, body: string, more?: ChildTarget | { reply_to: string }) =>
    post<ChatResult>(`/api/sessions/${encode(name)}/message`, { body, ...more }),
  send: (to: string, body: string) => post<SendResult>('/api/messages', { to, body }),
  chatDelivery: (id: string) => call<ChatDelivery>(`/api/chat-delivery/${encode(id)}`),
  run: (name: string) => call<RunDetail>(`/api/runs/${encode(name)}`),
  /** A piece of a job's log from a byte on; `next` is where it goes on. */
  runLog: (name: string, from: number) =>
    call<{ text: string; next: number; size: number }>(`/api/runs/${encode(name)}?from=${from}`),
  /** Last seen first; `more` says that older ones are not listed. */
  endedSessions: () => call<{ sessions: EndedSession[]; more: boolean }>('/api/sessions/ended'),
  drafts: () => call<{ drafts: SharedDraft[] }>('/api/drafts'),
  /** A page that is being closed is not waited for: `leaving` lets the request outlive it. */
  setDraft: (key: string, value: unknown, leaving: boolean) =>
    post<{ key: string }>('/api/drafts', { key, value }, 'POST', leaving),
  /** The newest turns of a job, oldest first. */
  runTurns: (name: string) => call<{ turns: RunTurn[] }>(`/api/runs/${encode(name)}/turns`),
  /** All of its changes, or those since a commit of its branch; Failed with 404 for another commit. */
  runDiff: (name: string, since = '') =>
    call<Diff>(`/api/runs/${encode(name)}/diff${since === '' ? '' : `?since=${encode(since)}`}`),
  /** All of them become one message to the job. */
  commentRun: (name: string, comments: LineComment[]) =>
    post<Said>(`/api/runs/${encode(name)}/comments`, { comments }),
  finishRun: (name: string, action: FinishAction, dryRun: boolean, message = '') =>
    post<Finished>(`/api/runs/${encode(name)}/finish`, {
      action,
      dryRun,
      ...(message === '' ? {} : { message }),
    }),
  /** A note about a native child of the job's own session, to the job. */
  noteToJob: (job: string, child: string, body: string) =>
    post<ChatResult>(`/api/jobs/${encode(job)}/message`, { body, child, target: 'parent' }),
  writeToJob: (job: string, body: string) => post<Said>('/api/subagents/message', { job, body }),
  setAway: (on: boolean) => post<Prompting>('/api/away', { on }),
  changeJob: (job: string, change: JobChange) => post<Said>('/api/subagents/settings', { job, ...change }),
  cancelJob: (job: string) => post<Said>('/api/subagents/cancel', { job }),
  /** The first answer wins: Failed with status 409 where somebody was quicker. */
  answerApproval: (id: string, decision: Verdict, reason: string, rule?: RuleWish) =>
    post<Approval>(`/api/approvals/${encode(id)}`, {
      decision,
      ...(reason === '' ? {} : { reason }),
      ...(rule === undefined ? {} : { rule }),
    }),
  /** Answers what a session's model asks, a list for each of its questions. */
  chooseAnswers: (id: string, answers: string[][]) =>
    post<Approval>(`/api/approvals/${encode(id)}`, { decision: 'allow', answers }),
  rules: () => call<{ rules: Rule[] }>('/api/rules'),
  /** Nothing is allowed by it any more when this returns. */
  takeBackRule: (id: string) => post<TakenBack>(`/api/rules/${encode(id)}`, {}, 'DELETE'),
  questions: () => call<{ questions: Question[] }>('/api/questions'),
  /** The first answer wins: Failed with status 409 where the question is over. */
  answerQuestion: (id: string, answer: QuestionAnswer) =>
    post<Question>(`/api/questions/${encode(id)}`, answer),
  /** Puts news away, or takes it back, everywhere; answers with what is left. */
  /** Pauses or resumes the messages of two sessions to each other. */
  decideExchange: (a: string, b: string, action: 'pause' | 'resume') =>
    post<{ a: string; b: string; paused: boolean; waiting: number | null }>('/api/exchanges', {
      a,
      b,
      action,
    }),
  putAway: (id: string, away: boolean) => post<{ needs: Need[] }>(`/api/needs/${encode(id)}`, { away }),
  /** The first answer is as slow as the agent's CLI. */
  models: (agent: string) => call<{ agents: AgentModels[] }>(`/api/models?agent=${encode(agent)}`),
  /** Of all agents on this PC; the first answer is as slow as the slowest CLI. */
  usage: () => call<{ agents: AgentUsage[] }>('/api/usage'),
  /** What they told last, without starting any. */
  usageKept: () => call<{ agents: AgentUsage[] }>('/api/usage/kept'),
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
  search: (words: string, options: SearchOptions = {}) => {
    const params = new URLSearchParams(words === '' ? {} : { q: words });
    for (const [name, value] of Object.entries(options)) params.set(name, String(value));
    return call<{ results: Hit[]; behind: number; next: string }>(`/api/search?${params}`);
  },
  /** Messages of all stores that hold the text literally, newest first, those before the given time only. */
  searchArchive: (query: string, limit: number, before?: number) =>
    call<{ messages: ArchiveMessage[] }>(
      `/api/archive/messages?query=${encode(query)}&limit=${limit}${before === undefined ? '' : `&before=${before}`}`,
    ),
};
