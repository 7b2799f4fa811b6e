// Conversations already loaded, one per session name, so that going back to
// one shows it at once and with the older messages that were fetched.

import { api, type Message } from '../../lib/api';
import { joinNotifications, mergeMessages } from './messages';

const PAGE = 50;

export class Conversation {
  /** Oldest first; null while never loaded. */
  messages: Message[] | null = $state.raw(null);
  /** There are no older ones. */
  complete = $state(false);
  problem = $state('');
  /** As the server has them, one for each notification. */
  #stored: Message[] = [];
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** Fetches the newest; keeps what is shown when that fails. */
  async refresh(): Promise<void> {
    await this.#try(async () => {
      const { messages } = await api.messages(this.#name, PAGE);
      if (messages.length < PAGE) this.complete = true;
      this.#show(mergeMessages(this.#stored, messages, PAGE));
    });
  }

  async loadOlder(): Promise<void> {
    const oldest = this.#stored[0];
    if (oldest === undefined) return;
    await this.#try(async () => {
      // The bound excludes its own millisecond, which other messages may share.
      const { messages } = await api.messages(this.#name, PAGE, oldest.created_at + 1);
      const merged = mergeMessages(this.#stored, messages, Infinity);
      this.complete = messages.length < PAGE || merged.length === this.#stored.length;
      this.#show(merged);
    });
  }

  #show(stored: Message[]): void {
    this.#stored = stored;
    this.messages = joinNotifications(stored);
  }

  async #try(load: () => Promise<void>): Promise<void> {
    try {
      await load();
      this.problem = '';
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- only its values are shown, never its keys
const conversations = new Map<string, Conversation>();

export function conversationWith(name: string): Conversation {
  let found = conversations.get(name);
  if (found === undefined) {
    found = new Conversation(name);
    conversations.set(name, found);
  }
  return found;
}

/** The messages of all conversations loaded so far. */
export const loadedMessages = (): Message[] =>
  [...conversations.values()].flatMap(({ messages }) => messages ?? []);

/** A message of any conversation loaded so far. */
export function loadedMessage(id: string): Message | undefined {
  for (const { messages } of conversations.values()) {
    const found = messages?.find((m) => m.id === id);
    if (found !== undefined) return found;
  }
  return undefined;
}
