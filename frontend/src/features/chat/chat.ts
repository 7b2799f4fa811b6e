// Owner input, without markup: what may be sent and what became of it.

import type { ChatDelivery, ChatResult, SendResult } from '../../lib/api';
import { count } from '../../lib/text';
import { clock } from '../../lib/time';
import type { Sign } from '../../ui/signs';

/** The server's limit for owner input, in characters (Unicode code points). */
export const BODY_MAX = 32_000;

/** How far the owner's words came; 'failed' never left the page. */
export type Outcome = ChatResult['state'] | 'failed';

export interface Status {
  outcome: Outcome;
  /** What it means, as it follows the outcome's word and a colon. */
  words: string;
  /** The way the words took; '' while none. */
  transport: string;
  /** A handle to ask again with while the outcome may still change. */
  receipt: string | null;
}

/** Each outcome as sign and word; the tone is only for the colour. */
export const OUTCOMES: Record<
  Outcome,
  { sign: Sign; word: string; tone: 'plain' | 'good' | 'warn' | 'bad' }
> = {
  queued: { sign: 'waiting', word: 'Queued', tone: 'plain' },
  delivered: { sign: 'good', word: 'Delivered', tone: 'good' },
  unconfirmed: { sign: 'warn', word: 'Unconfirmed', tone: 'warn' },
  'not-supported': { sign: 'refused', word: 'Not supported', tone: 'bad' },
  failed: { sign: 'bad', word: 'Not sent', tone: 'bad' },
};

/** True where the words went nowhere, so that they stay in the composer. */
export function wentNowhere(status: Status): boolean {
  return status.outcome === 'failed' || status.outcome === 'not-supported';
}

const length = (text: string) => [...text].length;

/** Why the text cannot be sent, '' when it can; an empty text needs no words. */
export function bodyProblem(text: string): string {
  const over = length(text) - BODY_MAX;
  return over > 0 ? `${over.toLocaleString('en')} characters too long` : '';
}

export function canSend(text: string): boolean {
  return text.trim() !== '' && bodyProblem(text) === '';
}

/** What became of a message to one session, to a child or to its parent. */
export function resultStatus({ state, transport, receipt, detail }: ChatResult): Status {
  // The outcome's own word stands before it already.
  const words = detail.replace(/^Unconfirmed:\s*/, '');
  return { outcome: state, words, transport, receipt };
}

/**
 * The newer truth behind a receipt, or null when nothing changed. Delivered is
 * consumed, which says nothing about an answer.
 */
export function deliveryStatus(before: Status, now: ChatDelivery, time: number): Status | null {
  if (now.state === before.outcome) return null;
  const status = { ...before, outcome: now.state };
  switch (now.state) {
    case 'delivered':
      return { ...status, words: `read ${clock(now.updatedAt, time)}.`, receipt: null };
    case 'queued':
      return { ...status, words: 'it was stored after all, and waits.' };
    default:
      return { ...status, words: 'it was not read and waits no more; it is not sent again by itself.' };
  }
}

/** What became of a message to several sessions. */
export function sendStatus(result: SendResult): Status {
  const away = result.recipients.filter((r) => !r.online).length;
  const woken = result.recipients.filter((r) => r.wake).length;
  const parts = [`stored for ${count(result.recipients.length, 'session')}`];
  if (woken > 0) parts.push(`a wake was asked for ${woken}`);
  if (away > 0) parts.push(`${away} not connected`);
  return { outcome: 'queued', words: `${parts.join('; ')}.`, transport: 'bridge', receipt: null };
}
