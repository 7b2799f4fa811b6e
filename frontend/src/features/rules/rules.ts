// Standing rules in words, without markup.

import type { Approval, FromNowOn, Rule, RuleWish, TakenBack } from '../../lib/api';
import { count } from '../../lib/text';

/** How long a rule may hold. */
export const SPANS = [
  { value: '', label: 'until I take it back', hours: 0 },
  { value: 'hour', label: 'for an hour', hours: 1 },
  { value: 'day', label: 'for 24 hours', hours: 24 },
  { value: 'month', label: 'for 30 days', hours: 720 },
] as const;
export type Span = (typeof SPANS)[number]['value'];

/** What the owner is choosing. */
export interface Choice {
  /** How many words are spelled out; null allows the whole alone. */
  words: number | null;
  everywhere: boolean;
  span: Span;
}

/** The wish that goes with the answer. */
export function wishOf(offer: FromNowOn, choice: Choice, now: number): RuleWish {
  const hours = SPANS.find((s) => s.value === choice.span)?.hours ?? 0;
  return {
    match: choice.words === null ? 'exact' : 'prefix',
    ...(choice.words === null ? {} : { words: offer.words.slice(0, choice.words) }),
    folder: choice.everywhere ? 'all' : 'this',
    ...(hours === 0 ? {} : { until: now + hours * 3_600_000 }),
  };
}

/** What would be allowed, before the text of it. */
export function allowsWords(a: Approval, choice: Choice): string {
  if (choice.words !== null) return 'Every command that begins with these words';
  return a.kind === 'command' ? 'Exactly this command, whole' : 'Exactly this, with all that stands above';
}

/** How a rule was used. */
export const usesWords = (rule: Rule) =>
  rule.uses === 0 ? 'never used' : `used ${count(rule.uses, 'time')}`;

/** What became of a rule that was taken back. */
export function takenWords(taken: TakenBack): string {
  const words = ['Taken back: it allows nothing any more.'];
  if (taken.asked.length > 0)
    words.push(`${count(taken.asked.length, 'question')} that it had answered: asked again.`);
  if (taken.handed.length > 0) {
    words.push(
      `${count(taken.handed.length, 'answer')} had been handed over: what was allowed by then may have been done.`,
    );
  }
  return words.join(' ');
}
