// Landing and dropping what a worktree job did, in words.

import { Failed, type FinishAction, type Finished, type Landing as Landed, type Run } from '../../lib/api';
import { count } from '../../lib/text';

export interface Landing {
  label: string;
  /** The heading of its dialog, with the job's title. */
  asks: (title: string) => string;
  /** What it would do, with the branch's name. */
  explains: (branch: string) => string;
  /** Makes a commit, whose message can be given. */
  commits: boolean;
  /** Its work reaches the owner's checkout, where it may not fit. */
  lands: boolean;
  /** Its work is dropped. */
  drops: boolean;
}

/** The ways to finish; an undo takes one of them back. */
export type LandAction = Exclude<FinishAction, 'undo'>;

export const LANDINGS: Record<LandAction, Landing> = {
  apply: {
    label: 'Apply',
    asks: (title) => `Apply ${title}?`,
    explains: (branch) =>
      `Its changes are staged in your checkout, for you to look at and commit. ${branch} stays as it is.`,
    lands: true,
    commits: false,
    drops: false,
  },
  squash: {
    label: 'Squash',
    asks: (title) => `Squash ${title}?`,
    explains: (branch) => `All of ${branch} becomes one commit on the branch of your checkout.`,
    lands: true,
    commits: true,
    drops: false,
  },
  merge: {
    label: 'Merge',
    asks: (title) => `Merge ${title}?`,
    explains: (branch) => `${branch} is merged into the branch of your checkout, with its commits.`,
    lands: true,
    commits: true,
    drops: false,
  },
  keep: {
    label: 'Keep for later',
    asks: (title) => `Keep ${title} for later?`,
    explains: (branch) => `Nothing lands: ${branch} stays for later, and its worktree may go.`,
    lands: false,
    commits: false,
    drops: false,
  },
  discard: {
    label: 'Discard',
    asks: (title) => `Discard ${title}?`,
    explains: (branch) =>
      `Nothing lands and its worktree goes. ${branch} can be had back for 30 days from a branch under bridge/discarded.`,
    lands: false,
    commits: false,
    drops: true,
  },
};

export const ACTIONS = Object.keys(LANDINGS) as LandAction[];

/** What a dry run came to. */
export function fits({ conflicts }: Pick<Finished, 'conflicts'>): string {
  return conflicts.length === 0
    ? 'It fits without a conflict.'
    : conflicts.length === 1
      ? '1 file does not fit:'
      : `${count(conflicts.length, 'file')} do not fit:`;
}

/** The conflicts that a refusal names. */
export function conflictsOf(error: unknown): string[] {
  const told =
    error instanceof Failed ? (error.body as { conflicts?: unknown } | null)?.conflicts : undefined;
  return Array.isArray(told) ? told.filter((path): path is string => typeof path === 'string') : [];
}

const DONE: Record<FinishAction, string> = {
  apply: 'Applied: its changes are staged in your checkout.',
  squash: 'Squashed into one commit',
  merge: 'Merged',
  keep: 'Kept.',
  discard: 'Discarded.',
  undo: 'Landing undone',
};

/** What the owner did last with the work, '' for nothing that counts. */
export function landedWords(landing: Landed | null): string {
  switch (landing?.state) {
    case 'done':
      return doneWords({ action: landing.action, commit: landing.commit ?? '' });
    case 'staged':
      return landing.action === 'undo'
        ? 'The undo was interrupted: its changes are staged in your checkout, not committed.'
        : 'It was broken off: its changes are staged in your checkout, not committed.';
    case 'begun':
      return 'It is being finished just now.';
    default:
      return '';
  }
}

/** Whether the work stands landed or dropped, so that only an undo is offered. */
export function isSettled(run: Pick<Run, 'endedAt' | 'worktree'>): boolean {
  const landed = run.worktree?.landed;
  if (landed?.state !== 'done' || landed.action === 'apply') return false;
  return run.endedAt === null || run.endedAt <= landed.at; // a later run has new work
}

/** What an undo would take back: "Landed as 3056dcc on main". */
export function standingWords({ action, state, commit = '', on = '' }: Landed): string {
  if (action === 'discard') return 'Discarded';
  if (state === 'staged') return 'Staged in your checkout, not committed';
  if (action === 'apply') return 'Applied: staged in your checkout';
  return `Landed as ${commit.slice(0, 7)}${on === '' ? '' : ` on ${on}`}`;
}

/** What an undo of it would do. */
export function undoWords({ action, state, on = '' }: Landed): string {
  if (action === 'discard') return 'Its branch gets its name back, and you can land the work.';
  if (action === 'apply' || state === 'staged')
    return 'Bridge takes the staged changes out of your checkout. Your other changes stay.';
  return `Bridge adds a commit to ${on === '' ? 'the branch of your checkout' : on} that reverts the landing. Later commits stay.`;
}

/** What was done, with the commit where there is one. */
export function doneWords({ action, commit }: Pick<Finished, 'action' | 'commit'>): string {
  const words = DONE[action];
  if (words.endsWith('.')) return words;
  return commit === '' ? `${words}.` : `${words}: ${commit.slice(0, 10)}.`;
}
