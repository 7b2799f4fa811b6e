// What the page says about delegated jobs, without markup.

import type { Evidence, Run, RunStatus, RunTurn, Said, WaitFor } from '../../lib/api';
import { byName, count } from '../../lib/text';
import type { Status } from '../chat/chat';

const ENDED: readonly RunStatus[] = ['finished', 'failed', 'refused', 'limit', 'cancelled', 'interrupted'];

/** Nothing more comes of it unless it is continued. */
export const isEnded = (run: Pick<Run, 'status'>) => ENDED.includes(run.status);

/** It waits for somebody's word; a provider that is asked again needs nobody. */
export const waitsForWord = (run: Pick<Run, 'status' | 'wait'>) =>
  run.status === 'waiting' && run.wait?.for !== 'retry';

/** How it stands, in a word; with a question mark where that is not known for sure. */
export function stateWord(run: Pick<Run, 'status' | 'wait' | 'doubt'>): string {
  if (run.doubt !== undefined) return `${run.status}?`;
  if (waitsForWord(run)) return 'waits for you';
  return { queued: 'in line', waiting: 'retries' }[run.status as string] ?? run.status;
}

/** What it waits for, as it follows the job's title. */
export const WAITS: Record<WaitFor, string> = {
  approval: 'asks for permission',
  budget: 'has spent what it was given',
  timeout: 'has run for as long as it was given',
  repeat: 'made the same call with the same result five times',
  silence: 'was not heard of for ten minutes',
  retry: 'waits to ask its provider again',
};

/** The outcomes, the good one first, as filters and headings name them. */
export const OUTCOMES = ENDED;

/** Why it ended, in words. */
const REASONS: Record<string, string> = {
  answer: 'It answered.',
  empty: 'It ended without a word.',
  refusal: 'The model or its provider refused.',
  limit: 'The account’s usage is used up.',
  context: 'The conversation does not fit into the model any more.',
  length: 'Its answer was cut by the model’s own limit.',
  auth: 'The provider does not accept the account.',
  overload: 'The provider was overloaded.',
  provider: 'The provider failed.',
  network: 'The provider could not be reached.',
  interrupted: 'It was interrupted.',
  denied: 'It stopped where something was denied.',
  no_session: 'The session to continue is unknown.',
  in_use: 'Another process writes to its session.',
  lost: 'The agent ended in the middle.',
  failed: 'The agent reports an error.',
  cancelled: 'Somebody cancelled it.',
  runner_gone: 'Its runner is gone and left no result.',
  not_started: 'The agent could not be started.',
};

/** Why a run ended; a word that nobody knows stands for itself. */
export const reasonWords = (ended: string) => REASONS[ended] ?? (ended === '' ? '' : `It ended: ${ended}.`);

/** What held below the agent's own rules. */
export function layerWords(layer: string, agent: string): string {
  switch (layer) {
    case 'sandbox':
      return 'in a sandbox of this system';
    case 'sandbox-signals':
      return 'in a sandbox of this system; before Linux 6.12, as here, the job can end your other programs';
    case 'own':
      return `in ${agent}’s own sandbox`;
    case 'none':
      return `not in a sandbox, ${agent}’s own rules only`;
    default:
      return '';
  }
}

/** How far the network is open to a job, '' where each command is asked about. */
export function networkWords(access: Run['access'], layer: string, agent: string): string {
  if (access === 'ask' || layer === '') return '';
  if (layer === 'own')
    return access === 'read' ? 'no network for its commands' : 'no network for commands in its sandbox';
  if (agent === 'claude')
    return access === 'read'
      ? 'no network for its commands by claude’s own rules'
      : 'asks before commands that reach the network';
  if (access === 'edit' || agent !== 'opencode') return 'its network is open';
  return layer === 'sandbox' || layer === 'sandbox-signals'
    ? 'no network for its commands; opencode itself reaches its provider and what its settings name'
    : 'runs no commands; opencode itself reaches its provider and what its settings name';
}

/** What each access means, for whoever chooses one. */
export const ACCESS: Record<Run['access'], string> = {
  read: 'changes nothing',
  ask: 'asks before each change',
  edit: 'edits within its folder',
};

/** How it is called: its title, or its name while it has none. */
export const titleOf = (run: Pick<Run, 'title' | 'job'>) => (run.title === '' ? run.job : run.title);

/** Why a queued job does not run yet: another one works in its agent's session, or there is no slot. */
export function lineWords(run: Run, runs: Run[]): string {
  const isSame = (other: Run) =>
    other.job !== run.job &&
    other.session === run.session &&
    other.agent === run.agent &&
    other.called === run.called &&
    other.remote === undefined &&
    other.status !== 'queued' &&
    !isEnded(other);
  const other = run.session === '' || run.remote !== undefined ? undefined : runs.find(isSame);
  return other === undefined
    ? 'waits for a free slot'
    : `waits until ${titleOf(other)} has ended: both work in one session of ${run.called}`;
}

/** How long it has taken, or takes so far, in ms; null while it stands in line. */
export function elapsed(run: Run, now: number): number | null {
  if (run.startedAt === null) return null;
  return Math.max(0, (run.endedAt ?? now) - run.startedAt);
}

/** A duration that moves: "8 s", "2 min 05 s", "1 h 20 min". */
export function duration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** Money as the agent computes it, '' where it tells none. */
export function cost(usd: number): string {
  if (usd <= 0) return '';
  return usd < 0.01 ? 'under $0.01' : `$${usd.toFixed(2)}`;
}

/** "12.4k tokens", '' for none. */
export function tokens(n: number): string {
  if (n <= 0) return '';
  if (n < 1000) return count(n, 'token');
  if (n < 999_500) return `${(n / 1000).toFixed(n < 9950 ? 1 : 0)}k tokens`;
  return `${(n / 1e6).toFixed(1)}M tokens`;
}

/** How far it says that it is, in words, '' for nothing. */
export function progressWords({ progress }: Run): string {
  const { percent, etaMinutes, note } = progress;
  const parts = [];
  if (percent !== null) parts.push(`${percent} %`);
  if (etaMinutes !== null) parts.push(etaMinutes < 1 ? 'about done' : `about ${etaMinutes} min left`);
  if (note !== '') parts.push(note);
  return parts.join(' · ');
}

/** A job and those that it gave itself. */
export interface Tree {
  run: Run;
  children: Tree[];
}

export interface Groups {
  /** Trees in which somebody's word is waited for. */
  waiting: Tree[];
  atWork: Tree[];
  ended: Tree[];
}

/**
 * The jobs as trees, each in the group of its most urgent member. Who waits longest
 * comes first; of the others the newest.
 */
export function groupRuns(runs: Run[]): Groups {
  const trees = new Map(runs.map((run) => [run.job, { run, children: [] as Tree[] }]));
  const roots: Tree[] = [];
  for (const tree of trees.values()) {
    const parent = trees.get(tree.run.by);
    (parent === undefined || parent === tree ? roots : parent.children).push(tree);
  }
  const groups: Groups = { waiting: [], atWork: [], ended: [] };
  for (const root of roots) {
    const all = members(root);
    if (all.some(waitsForWord)) groups.waiting.push(root);
    else if (all.some((run) => !isEnded(run))) groups.atWork.push(root);
    else groups.ended.push(root);
  }
  groups.waiting.sort((a, b) => (a.run.startedAt ?? 0) - (b.run.startedAt ?? 0));
  groups.atWork.sort((a, b) => begunLast(b.run) - begunLast(a.run));
  groups.ended.sort((a, b) => (b.run.endedAt ?? 0) - (a.run.endedAt ?? 0));
  return groups;
}

/** One in line is newer than any that has begun. */
const begunLast = (run: Run) => run.startedAt ?? Number.MAX_SAFE_INTEGER;

function members(tree: Tree): Run[] {
  return [tree.run, ...tree.children.flatMap(members)];
}

/** What a list of jobs is narrowed to; '' narrows nothing. */
export interface RunFilter {
  text: string;
  outcome: RunStatus | '';
  agent: string;
  by: string;
}

export const NO_FILTER: RunFilter = { text: '', outcome: '', agent: '', by: '' };

export const isFiltered = (f: RunFilter) => Object.values(f).some((value) => value !== '');

/** The jobs that pass; an outcome narrows the ended ones alone. */
export function filterRuns(runs: Run[], filter: RunFilter): Run[] {
  const words = filter.text.trim().toLowerCase();
  return runs.filter(
    (run) =>
      (filter.agent === '' || run.agent === filter.agent) &&
      (filter.by === '' || run.by === filter.by) &&
      (filter.outcome === '' || run.status === filter.outcome) &&
      (words === '' ||
        [run.title, run.job, run.by, run.model, run.branch, run.workdir].some((field) =>
          field.toLowerCase().includes(words),
        )),
  );
}

/** What the filters offer, each once and in order. */
export function choices(runs: Run[]): { agents: string[]; by: string[] } {
  const each = (values: string[]) => [...new Set(values)].sort(byName);
  return { agents: each(runs.map((r) => r.agent)), by: each(runs.map((r) => r.by)) };
}

/** What the runner saw, in one line. */
export function evidenceLine(e: Evidence): string {
  const failed = e.commands.filter((c) => c.exit !== null && c.exit !== 0).length;
  return [
    count(e.files.length, 'file'),
    count(e.commands.length, 'command') + (failed > 0 ? `, ${failed} failed` : ''),
    duration(e.durationMs),
    tokens(e.tokens),
    cost(e.costUsd),
  ]
    .filter((part) => part !== '')
    .join(' · ');
}

/** How words reach it, for the composer. */
export function reachWords(run: Run): string {
  if (run.status === 'queued') return 'It stands in line: it reads this when it begins.';
  if (isEnded(run)) return 'It has ended: this continues it in its own session, in line for a slot.';
  if (run.wait?.for === 'approval') return 'This job is waiting for permission. Allow or deny it above.';
  return 'It reads this at its next safe step.';
}

/** What became of words to it; only its log tells when its agent reads them. */
export function saidStatus({ delivery, status }: Said): Status {
  const words = {
    running: 'its runner hands it over at the next safe step.',
    continued: 'it goes on with this now.',
    queued: 'it stands in line and begins with this.',
    applied: 'its agent acts on it.',
    none: `it is ${status}.`,
  }[delivery ?? 'none'];
  return { outcome: 'queued', words, transport: 'bridge', receipt: null };
}

/** The command that continues the agent's own session by hand, '' where there is none. */
export function byHand(run: Pick<Run, 'agent' | 'session'>): string {
  if (run.session === '') return '';
  switch (run.agent) {
    case 'claude':
      return `claude --resume ${run.session}`;
    case 'codex':
      return `codex resume ${run.session}`;
    case 'opencode':
      return `opencode --session ${run.session}`;
    default:
      return '';
  }
}

/** The turn has an answer of the agent. */
export const isTurnAnswered = (turn: Pick<RunTurn, 'text'>) => turn.text !== '';

/**
 * The turns before the one whose result is shown, that turn, and the turn that is open at first:
 * the last one with an answer, if the shown one has none. A failed turn must not hide an answer.
 */
export function splitTurns(turns: RunTurn[]): {
  earlier: RunTurn[];
  last: RunTurn | null;
  open: number | null;
} {
  const at = turns.findLastIndex((t) => t.status !== '');
  const last = turns[at] ?? null;
  const earlier = turns.slice(0, Math.max(0, at));
  const open = last === null || isTurnAnswered(last) ? undefined : earlier.findLast(isTurnAnswered);
  return { earlier, last, open: open?.run ?? null };
}

/** How long all turns took, in milliseconds. */
export const totalTime = (turns: Pick<RunTurn, 'durationMs'>[]) =>
  turns.reduce((sum, t) => sum + t.durationMs, 0);
