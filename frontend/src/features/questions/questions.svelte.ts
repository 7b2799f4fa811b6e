// What sessions ask, as the server has it, and the answers on their way.

import { api, Failed, type Question, type QuestionAnswer } from '../../lib/api';
import { keepDraft, keptText } from '../../lib/drafts';

class Questions {
  list: Question[] = $state.raw([]);

  async refresh(): Promise<void> {
    try {
      this.list = (await api.questions()).questions;
    } catch {
      // The page says itself that nothing can be reached, and looks again.
    }
  }

  took(question: Question): void {
    this.list = this.list.map((q) => (q.id === question.id ? question : q));
  }
}

export const questions = new Questions();

/** One answer being given; what is half written is kept until it is taken. */
export class Reply {
  #text = $state('');
  pin = $state(false);
  sending = $state(false);
  /** Why it was not taken, or ''. */
  problem = $state('');
  #id: string;

  constructor(id: string) {
    this.#id = id;
    this.#text = keptText(`answer:${id}`);
  }

  get text(): string {
    return this.#text;
  }
  set text(text: string) {
    this.#text = text;
    keepDraft(`answer:${this.#id}`, text);
  }

  /** Answers once; what became of it before is shown instead. */
  async give(option: string): Promise<void> {
    if (this.sending) return;
    this.sending = true;
    this.problem = '';
    const answer: QuestionAnswer = { pin: this.pin };
    if (option !== '') answer.option = option;
    if (this.text.trim() !== '') answer.text = this.text.trim();
    try {
      questions.took(await api.answerQuestion(this.#id, answer));
      keepDraft(`answer:${this.#id}`, null);
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      if (error instanceof Failed && error.status === 409) {
        const stands = (error.body as { question?: Question } | null)?.question;
        if (stands !== undefined) questions.took(stands);
      }
    } finally {
      this.sending = false;
    }
  }
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- only its values are shown, never its keys
const replies = new Map<string, Reply>();

export function replyTo(id: string): Reply {
  let reply = replies.get(id);
  if (reply === undefined) {
    reply = new Reply(id);
    replies.set(id, reply);
  }
  return reply;
}
