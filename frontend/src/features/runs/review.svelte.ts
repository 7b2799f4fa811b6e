// Comments on lines of what a job changed, collected until they are sent as one
// message. One collection a job, kept until then, with the one that is being written.

import { api, type LineComment } from '../../lib/api';
import { keepDraft, keptDraft } from '../../lib/drafts';
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

/** By file, then by line; what was there before what came. */
function inOrder(a: Remark, b: Remark): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return a.line - b.line || (a.side === b.side ? 0 : a.side === 'old' ? -1 : 1);
}

/** What is kept of a collection. */
interface Kept {
  comments: Remark[];
  at: Where | null;
  from: number | null;
  draft: string;
}

function isWhere(value: unknown): value is Where {
  const where = value as Partial<Where> | null;
  return (
    typeof where?.path === 'string' &&
    typeof where.line === 'number' &&
    (where.side === 'old' || where.side === 'new')
  );
}

const isFrom = (value: unknown): value is number | null => value === null || typeof value === 'number';

const isRemark = (value: unknown): value is Remark =>
  isWhere(value) &&
  isFrom((value as Partial<Remark>).from) &&
  typeof (value as Partial<Remark>).body === 'string';

function keptReview(key: string): Kept {
  const kept = keptDraft(key) as Partial<Record<keyof Kept, unknown>> | null | undefined;
  const { comments, at, from, draft } = kept ?? {};
  return {
    comments: Array.isArray(comments) ? comments.filter(isRemark).sort(inOrder) : [],
    ...(isWhere(at) && typeof draft === 'string' && draft.trim() !== ''
      ? { at, from: isFrom(from) ? from : null, draft }
      : { at: null, from: null, draft: '' }),
  };
}

export class Review {
  comments: Remark[] = $state.raw([]);
  /** The first of several lines, null for one. */
  from: number | null = $state(null);
  /** Where one is being written, null for nowhere. */
  at: Where | null = $state.raw(null);
  sending = $state(false);
  status: Status | null = $state.raw(null);
  /** The comment that was left unfinished last, to take it up again. */
  left: Remark | null = $state.raw(null);
  #draft = $state('');
  #job: string;
  #key: string;

  constructor(job: string) {
    this.#job = job;
    this.#key = `review:${job}`;
    const kept = keptReview(this.#key);
    this.comments = kept.comments;
    this.at = kept.at;
    this.from = kept.from;
    this.#draft = kept.draft;
  }

  get draft(): string {
    return this.#draft;
  }
  set draft(text: string) {
    this.#draft = text;
    this.#store();
  }

  /** Stores what is collected and being written, or drops it where there is nothing. */
  #store(): void {
    const { comments, at, from, draft } = this;
    const isEmpty = comments.length === 0 && draft.trim() === '';
    keepDraft(this.#key, isEmpty ? null : ({ comments, at, from, draft } satisfies Kept));
  }

  /**
   * Begins a comment there, or takes up the one that is there. To extend is to comment on
   * all lines from where one is being written to there. Words that are being written
   * elsewhere become a comment first.
   */
  write(at: Where, extend = false): void {
    const begun = this.at;
    if (extend && begun !== null && begun.path === at.path && begun.side === at.side) {
      const ends = [begun.line, at.line, ...(this.from === null ? [] : [this.from])];
      this.at = { ...at, line: Math.max(...ends) };
      this.reach(Math.min(...ends));
      return;
    }
    if (begun !== null && samePlace({ ...begun, body: '' }, at)) return;
    if (this.draft.trim() !== '') this.keep();
    this.left = null;
    this.at = at;
    const there = this.comments.find((c) => samePlace(c, at));
    this.from = there?.from ?? null;
    this.draft = there?.body ?? '';
  }

  /** Has the comment begin at a line above it; its own line, or none, is that alone. */
  reach(line: number | null): void {
    const last = this.at?.line ?? 0;
    this.from = line === null || !Number.isInteger(line) || line < 1 || line >= last ? null : line;
    this.#store();
  }

  /** Whether the line is one of those that are being commented on. */
  holds(at: Where): boolean {
    const now = this.at;
    if (now === null || now.path !== at.path || now.side !== at.side) return false;
    return at.line <= now.line && at.line >= (this.from ?? now.line);
  }

  /** Whether what is being written would be lost by leaving it. */
  get isUnsaid(): boolean {
    const { at } = this;
    const text = this.draft.trim();
    return at !== null && text !== '' && text !== this.comments.find((c) => samePlace(c, at))?.body;
  }

  /** Keeps what was written; nothing takes it away. */
  keep(): void {
    const { at } = this;
    if (at === null) return;
    const others = this.comments.filter((c) => !samePlace(c, at));
    const body = this.draft.trim();
    this.comments = body === '' ? others : [...others, { ...at, body, from: this.from }].sort(inOrder);
    this.#close();
  }

  /** Takes a comment away; it can be taken up again. */
  remove(at: Where): void {
    const comment = this.comments.find((c) => samePlace(c, at));
    if (comment === undefined) return;
    this.comments = this.comments.filter((c) => c !== comment);
    this.left = comment;
    this.#store();
  }

  /** Closes the field; words that would be lost can be taken up again. */
  leave(): void {
    const { at, from } = this;
    this.left = at !== null && this.isUnsaid ? { ...at, from, body: this.draft } : null;
    this.#close();
  }

  /** Takes up what was left last. */
  takeUp(): void {
    const { left } = this;
    if (left === null) return;
    this.write({ path: left.path, line: left.line, side: left.side });
    this.from = left.from;
    this.draft = left.body;
  }

  #close(): void {
    this.at = null;
    this.from = null;
    this.draft = '';
  }

  /** Sends all comments, and reports whether it did. */
  async send(): Promise<boolean> {
    if (this.sending || this.comments.length === 0) return false;
    this.sending = true;
    const said = this.comments;
    try {
      this.status = saidStatus(await api.commentRun(this.#job, said.map(sent)));
      this.comments = this.comments.filter((comment) => !said.includes(comment));
      this.#store();
      return true;
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      this.status = { outcome: 'failed', words, transport: '', receipt: null };
      return false;
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
