// Drafts and what became of what was sent, one chat each. Drafts are kept until they are
// sent; what became of the rest is told while the page is open.

import { api, Failed } from '../../lib/api';
import { keepDraft, keptText } from '../../lib/drafts';
import { canSend, deliveryStatus, wentNowhere, type Status } from './chat';

/** Sends a text and tells what became of it. */
export type Transmit = (body: string) => Promise<Status>;

/** Something that left the page. */
export interface Sent {
  at: number;
  body: string;
  status: Status;
}

export class Chat {
  sending = $state(false);
  /** What became of the last text, null before the first. */
  status: Status | null = $state.raw(null);
  /** What left the page, oldest first. */
  sent: Sent[] = $state.raw([]);
  #key: string;
  #draft = $state('');

  constructor(key: string) {
    this.#key = `chat:${key}`;
    this.#draft = keptText(this.#key);
  }

  get draft(): string {
    return this.#draft;
  }
  set draft(text: string) {
    this.#draft = text;
    keepDraft(this.#key, text);
  }

  /** Sends the draft; it is only cleared once the server has it. */
  async send(transmit: Transmit): Promise<void> {
    const body = this.draft;
    if (this.sending || !canSend(body)) return;
    this.sending = true;
    this.status = null;
    try {
      const status = await transmit(body);
      this.status = status;
      if (wentNowhere(status)) return;
      this.sent = [...this.sent, { at: Date.now(), body, status }];
      if (this.draft === body) this.draft = '';
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      this.status = { outcome: 'failed', words, transport: '', receipt: null };
    } finally {
      this.sending = false;
    }
  }

  /** Asks what became of the last text, where that can still change. */
  async follow(): Promise<void> {
    const before = this.status;
    if (before?.receipt == null) return;
    try {
      const after = deliveryStatus(before, await api.chatDelivery(before.receipt), Date.now());
      if (after !== null && this.status === before) this.status = after;
    } catch (error) {
      // Handles end with the dashboard that gave them; the strip still tells.
      if (error instanceof Failed && this.status === before) this.status = { ...before, receipt: null };
    }
  }
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- only its values are shown, never its keys
const chats = new Map<string, Chat>();

/** The chat of a key: "overview", "session:<name>", "child:<name>/<child id>" or "run:<job>". */
export function chatOf(key: string): Chat {
  let chat = chats.get(key);
  if (chat === undefined) {
    chat = new Chat(key);
    chats.set(key, chat);
  }
  return chat;
}
