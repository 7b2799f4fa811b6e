// Drafts and the last status, one per chat, kept while the page is open: they
// survive switching chats and are lost with the page, on purpose.

import { api } from '../../lib/api';
import { canSend, deliveryStatus, type Status } from './chat';

export class Chat {
  draft = $state('');
  sending = $state(false);
  status: Status | null = $state.raw(null);

  /** Sends the draft; it is only cleared once the server has it. */
  async send(transmit: (body: string) => Promise<Status>): Promise<void> {
    const body = this.draft;
    if (this.sending || !canSend(body)) return;
    this.sending = true;
    this.status = null;
    try {
      this.status = await transmit(body);
      if (this.status.tone !== 'bad' && this.draft === body) this.draft = '';
    } catch (error) {
      const sentence = error instanceof Error ? error.message : String(error);
      this.status = { tone: 'bad', words: `Not sent. ${sentence}`, receipt: null };
    } finally {
      this.sending = false;
    }
  }

  /** Asks what became of the last message, where that can still change. */
  async follow(): Promise<void> {
    const before = this.status;
    if (before?.receipt == null) return;
    try {
      const after = deliveryStatus(await api.chatDelivery(before.receipt));
      if (after !== null && this.status === before) this.status = after;
    } catch {
      // Handles end with the dashboard that issued them; the strip still tells.
    }
  }
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- only its values are shown, never its keys
const chats = new Map<string, Chat>();

/** The chat of a key: "session:<name>", or "overview". */
export function chatOf(key: string): Chat {
  let chat = chats.get(key);
  if (chat === undefined) {
    chat = new Chat();
    chats.set(key, chat);
  }
  return chat;
}
