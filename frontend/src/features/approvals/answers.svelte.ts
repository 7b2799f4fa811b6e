// What the owner is about to answer, one question each. A reason, or words, half written
// are kept until they are taken.

import {
  api,
  Failed,
  type Approval,
  type ApprovalState,
  type Choice,
  type RuleWish,
  type Verdict,
} from '../../lib/api';
import { keepDraft, keptText, keptTexts } from '../../lib/drafts';
import { answersOf } from './approvals';

const ORDER: Record<ApprovalState, number> = {
  asked: 0,
  answered: 1,
  delivered: 2,
  applied: 3,
  expired: 3,
  withdrawn: 3,
};

/** The record that knows more: an answer comes before the state that tells of it. */
export function newer(a: Approval, b: Approval | null): Approval {
  return b !== null && ORDER[b.state] > ORDER[a.state] ? b : a;
}

export class Answer {
  #reason = $state('');
  /** The owner is giving a reason to deny it. */
  denying = $state(false);
  /** The owner is choosing what is allowed from now on. */
  ruling = $state(false);
  /** What is chosen and written so far for each question of a model's own. */
  chosen: string[][] = $state([]);
  words: string[] = $state([]);
  sending: Verdict | null = $state(null);
  /** Why it was not taken, or ''. */
  problem = $state('');
  /** As it stood after the answer, null before one. */
  record: Approval | null = $state.raw(null);
  #id: string;

  constructor(id: string) {
    this.#id = id;
    this.#reason = keptText(`deny:${id}`);
    this.words = keptTexts(`words:${id}`);
  }

  get reason(): string {
    return this.#reason;
  }
  set reason(text: string) {
    this.#reason = text;
    keepDraft(`deny:${this.#id}`, text);
  }

  /** Keeps the words as they are now; they are written in place. */
  keepWords(): void {
    keepDraft(`words:${this.#id}`, this.words.some((text) => text !== '') ? [...this.words] : null);
  }

  /** Answers once; what somebody else decided before is shown instead. */
  give(decision: Verdict, rule?: RuleWish): Promise<void> {
    return this.#send(decision, () =>
      api.answerApproval(
        this.#id,
        decision,
        decision === 'deny' ? this.reason.trim() : '',
        ...(rule === undefined ? [] : [rule]),
      ),
    );
  }

  answers(choices: Choice[]): string[][] {
    return answersOf(choices, this.chosen, this.words);
  }

  /** Gives what was chosen, once. */
  choose(choices: Choice[]): Promise<void> {
    return this.#send('allow', () => api.chooseAnswers(this.#id, this.answers(choices)));
  }

  async #send(decision: Verdict, send: () => Promise<Approval>): Promise<void> {
    if (this.sending !== null) return;
    this.sending = decision;
    this.problem = '';
    try {
      this.record = await send();
      this.denying = false;
      this.ruling = false;
      keepDraft(`deny:${this.#id}`, null);
      keepDraft(`words:${this.#id}`, null);
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      if (error instanceof Failed && error.status === 409) {
        this.record = (error.body as { approval?: Approval } | null)?.approval ?? null;
      }
    } finally {
      this.sending = null;
    }
  }
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- only its values are shown, never its keys
const answers = new Map<string, Answer>();

export function answerOf(id: string): Answer {
  let answer = answers.get(id);
  if (answer === undefined) {
    answer = new Answer(id);
    answers.set(id, answer);
  }
  return answer;
}
