// What a job or a session asks its owner, without markup: what is asked, what became of it.

import type { Approval, Choice, Elsewhere } from '../../lib/api';
import type { Sign } from '../../ui/signs';
import { clock } from '../../lib/time';

/** Somebody can still answer. What a session asks never ends by itself. */
export const isOpen = (a: Approval, now: number) =>
  a.state === 'asked' && (a.expiresAt === null || a.expiresAt > now);

/** The permission prompt of an interactive session. */
export const isPrompt = (a: Approval) => a.job === '';

/** It was decided and its agent has not acted on that yet. */
export const isOnItsWay = (a: Approval) => a.state === 'answered' || a.state === 'delivered';

/** What would be done, as a heading. */
export function askWords(a: Approval): string {
  switch (a.kind) {
    case 'command':
      return 'Run a command';
    case 'change':
    case 'edit':
      return 'Change files';
    case 'question':
    case 'choice':
      return 'A question';
    default:
      return a.what === '' ? 'Use a tool' : `Use ${a.what}`;
  }
}

/** The time that is left: "9 min 40 s", '' when it is over. */
export function timeLeft(a: Approval, now: number): string {
  if (a.expiresAt === null) return '';
  const seconds = Math.ceil((a.expiresAt - now) / 1000);
  if (seconds <= 0) return '';
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/** The share of its time that is left, 1 to 0. */
export function shareLeft(a: Approval, now: number): number {
  if (a.expiresAt === null) return 1;
  const whole = a.expiresAt - a.askedAt;
  return whole <= 0 ? 0 : Math.min(1, Math.max(0, (a.expiresAt - now) / whole));
}

export interface Fate {
  sign: Sign;
  word: string;
  /** What follows the word and a colon. */
  words: string;
  tone: 'plain' | 'good' | 'warn' | 'bad';
}

/** Who answered, for people: the owner is "you". */
export const answererWords = (by: string) =>
  by === 'owner' || by === 'you' ? 'you' : by.startsWith('rule:') ? 'your rule' : by;

/**
 * What became of it. Only "applied" says that the agent did as it was told: before that an
 * answer is on its way, and the words say how far.
 */
export function fateOf(a: Approval, now: number): Fate {
  const decided = a.decision !== 'allow' ? 'denied' : a.answers === undefined ? 'allowed' : 'chosen';
  const who =
    `${decided} by ${answererWords(a.answeredBy)} ${a.answeredAt !== null ? clock(a.answeredAt, now) : ''}`.trim();
  const asker = isPrompt(a) ? 'its terminal' : 'the job';
  switch (a.state) {
    case 'asked':
      return isOpen(a, now)
        ? { sign: 'waiting', word: 'Asked', words: 'nobody has answered yet.', tone: 'warn' }
        : { sign: 'waiting', word: 'Time is up', words: 'it is being denied.', tone: 'warn' };
    case 'answered':
      return {
        sign: 'waiting',
        word: 'Answered',
        words: `${who}; ${asker} does not have it yet.`,
        tone: 'warn',
      };
    case 'delivered':
      return {
        sign: 'waiting',
        word: 'Delivered',
        words: `${who}; its agent has not acted on it yet.`,
        tone: 'plain',
      };
    case 'applied':
      return {
        sign: a.decision === 'allow' ? 'good' : 'refused',
        word: 'Applied',
        words: `${who}.`,
        tone: a.decision === 'allow' ? 'good' : 'plain',
      };
    case 'expired':
      return {
        sign: 'bad',
        word: 'Expired',
        words: 'nobody answered in ten minutes, so it was denied.',
        tone: 'bad',
      };
    case 'withdrawn':
      if (isPrompt(a))
        return ended(
          a.kind === 'question' && a.elsewhere === 'allowed' ? 'answered' : (a.elsewhere ?? 'answered'),
        );
      return {
        sign: 'none',
        word: 'Withdrawn',
        words: 'the question is gone; nothing was done.',
        tone: 'plain',
      };
  }
}

/** How a prompt ended that no answer from here is known to have ended. */
function ended(how: Elsewhere): Fate {
  const at = (words: string): Fate => ({ sign: 'none', word: 'At the terminal', words, tone: 'plain' });
  switch (how) {
    case 'allowed':
      return at('it was allowed there.');
    case 'refused':
      return at('it was refused there.');
    case 'answered':
      return at('it was answered there.');
    case 'stopped':
      return at('it was turned down there, or its agent has ended.');
    case 'gone':
      return { ...at('its session has ended or went on to something else.'), word: 'Over' };
    case 'unheld':
      return at('nobody waits for an answer from here any more; it decides.');
    case 'unclear':
      return {
        sign: 'warn',
        word: 'Not known',
        words: 'whether your answer did anything; look at the terminal.',
        tone: 'warn',
      };
  }
}

/** What was chosen and written for each question, as it is sent: words come last. */
export const answersOf = (choices: Choice[], chosen: string[][], words: string[]): string[][] =>
  choices.map((choice, i) => {
    const own = (words[i] ?? '').trim();
    const labels = choice.options.map((o) => o.label).filter((label) => (chosen[i] ?? []).includes(label));
    return own === '' || labels.includes(own) ? labels : [...labels, own];
  });

/** How many questions have no answer. */
export const missing = (choices: Choice[], answers: string[][]): number =>
  choices.filter((_, i) => (answers[i] ?? []).length === 0).length;

/** True for a text that reads as a change of lines. */
export const isDiff = (detail: string) => /^(?:@@ |--- |\+\+\+ |diff --git )/m.test(detail);
