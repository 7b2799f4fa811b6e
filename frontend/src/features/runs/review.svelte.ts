// Comments on lines of what a job changed, collected until they are sent as one
// message. One collection a job, kept while the page is open.

import { api, type LineComment } from '../../lib/api';
import { saidStatus } from './runs';
import type { Status } from '../chat/chat';
import { samePlace } from './diff';

type Where = Pick<LineComment, 'path' | 'line' | 'side'>;

/** A comment on one line, or on the lines from another one to it. */
export interface Remark extends LineComment {
  from: number | null;
}

/** As it is sent: a comment has one line, so those above it are named in its words. */
export function sent({ from, ...comment }: Remark): LineComment {
  if (from === null) return comment;
  return { ...comment, body: `Lines ${from} to ${comment.line}: ${comment.body}` };
}

export class Review {
  comments: Remark[] = $state.raw([]);
  /** The first of several lines, null for one. */
  from: number | null = $state(null);
  /** Where one is being written, null for nowhere. */
  at: Where | null = $state.raw(null);
  draft = $state('');
  sending = $state(false);
  status: Status | null = $state.raw(null);
  #job: string;

  constructor(job: string) {
    this.#job = job;
  }

  /**
   * Begins a comment there, or takes up the one that is there. To extend is to comment on
   * all lines from where one is being written to there.
   */
  write(at: Where, extend = false): void {
    const begun = this.at;
    if (extend && begun !== null && begun.path === at.path && begun.side === at.side) {
      const ends = [begun.line, at.line, ...(this.from === null ? [] : [this.from])];
      this.at = { ...at, line: Math.max(...ends) };
      this.reach(Math.min(...ends));
      return;
    }
    this.at = at;
    const there = this.comments.find((c) => samePlace(c, at));
    this.draft = there?.body ?? '';
    this.from = there?.from ?? null;
  }

  /** Has the comment begin at a line above it; its own line, or none, is that alone. */
  reach(line: number | null): void {
    const last = this.at?.line ?? 0;
    this.from = line === null || !Number.isInteger(line) || line < 1 || line >= last ? null : line;
  }

  /** Whether the line is one of those that are being commented on. */
  holds(at: Where): boolean {
    const now = this.at;
    if (now === null || now.path !== at.path || now.side !== at.side) return false;
    return at.line <= now.line && at.line >= (this.from ?? now.line);
  }

  /** Keeps what was written; nothing takes it away. */
  keep(): void {
    const { at } = this;
    if (at === null) return;
    const others = this.comments.filter((c) => !samePlace(c, at));
    const body = this.draft.trim();
    this.comments = body === '' ? others : [...others, { ...at, body, from: this.from }];
    this.leave();
  }

  leave(): void {
    this.at = null;
    this.from = null;
    this.draft = '';
  }

  async send(): Promise<void> {
    if (this.sending || this.comments.length === 0) return;
    this.sending = true;
    try {
      this.status = saidStatus(await api.commentRun(this.#job, this.comments.map(sent)));
      this.comments = [];
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      this.status = { outcome: 'failed', words, transport: '', receipt: null };
    } finally {
      this.sending = false;
    }
  }
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- only its values are shown, never its keys
const reviews = new Map<string, Review>();

export function reviewOf(job: string): Review {
  let review = reviews.get(job);
  if (review === undefined) {
    review = new Review(job);
    reviews.set(job, review);
  }
  return review;
}
