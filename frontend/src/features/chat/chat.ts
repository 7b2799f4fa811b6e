// Owner input, without markup: what may be sent and what became of it.

import type { ChatDelivery, ChatResult, SendResult } from '../../lib/api';
import { count } from '../../lib/text';

/** The server's limit for owner input, in characters (Unicode code points). */
export const BODY_MAX = 32_000;

export interface Status {
  tone: 'plain' | 'good' | 'warn' | 'bad';
  words: string;
  /** A handle to ask again with while the words may still change. */
  receipt: string | null;
}

const length = (text: string) => [...text].length;

/** Why the text can not be sent, '' when it can; an empty text needs no words. */
export function bodyProblem(text: string): string {
  const over = length(text) - BODY_MAX;
  return over > 0 ? `${over.toLocaleString('en')} characters too long` : '';
}

export function canSend(text: string): boolean {
  return text.trim() !== '' && bodyProblem(text) === '';
}

/** What became of a message to one session. */
export function resultStatus(result: ChatResult): Status {
  const detail = result.detail === '' ? '' : ` ${result.detail}`;
  switch (result.state) {
    case 'delivered':
      return { tone: 'good', words: `Read.${detail}`, receipt: null };
    case 'queued':
      return { tone: 'plain', words: `Stored.${detail}`, receipt: result.receipt };
    case 'unconfirmed':
      return { tone: 'warn', words: `Unconfirmed, and not sent again by itself.${detail}`, receipt: null };
    case 'not-supported':
      return { tone: 'bad', words: `Not sent.${detail}`, receipt: null };
  }
}

/** The newer truth behind a handle, or null when nothing changed. */
export function deliveryStatus(delivery: ChatDelivery): Status | null {
  return delivery.state === 'delivered'
    ? { tone: 'good', words: 'Read by the session.', receipt: null }
    : null;
}

/** What became of a message to several sessions, or to one that is away. */
export function sendStatus(result: SendResult): Status {
  const away = result.recipients.filter((r) => !r.online).length;
  const woken = result.recipients.filter((r) => r.wake).length;
  const parts = [`Stored for ${count(result.recipients.length, 'session')}`];
  if (woken > 0) parts.push(`a wake was asked for ${woken}`);
  if (away > 0) parts.push(`${away} not connected`);
  return { tone: 'plain', words: `${parts.join('; ')}.`, receipt: null };
}
