// The delivery strip in data and words: six steps, each with a shape, and one
// sentence that says the present truth.

import type { Delivery, Message, Step } from '../../lib/api';
import { clock } from '../../lib/time';

export const STEPS: readonly Step[] = ['accepted', 'durable', 'woken', 'handed', 'consumed', 'answered'];

export const STEP_NAMES: Record<Step, string> = {
  accepted: 'accepted',
  durable: 'durable',
  woken: 'woken',
  handed: 'handed over',
  consumed: 'consumed',
  answered: 'answered',
};

/**
 * done: every recipient; part: some of them; pending: none yet;
 * never: it can not happen; skipped: a later step happened without it.
 */
export type Mark = 'done' | 'part' | 'pending' | 'never' | 'skipped';

export const MARK_NAMES: Record<Mark, string> = {
  done: 'done',
  part: 'done by some',
  pending: 'not yet',
  never: 'not possible',
  skipped: 'not needed',
};

export type Tone = 'plain' | 'good' | 'wait' | 'bad';

export interface Summary {
  marks: { step: Step; mark: Mark }[];
  words: string;
  tone: Tone;
}

/** The mark of one step of one delivery. */
export function markOf(delivery: Delivery, step: Step): Mark {
  const index = STEPS.indexOf(step);
  const entry = delivery.stages.find((s) => s.stage === step);
  if (entry?.at != null) return 'done';
  // A step that a later one overtook was not needed, whatever was possible.
  if (delivery.stages.some((s) => STEPS.indexOf(s.stage) > index && s.at !== null)) return 'skipped';
  if (entry?.possible === false) return 'never';
  return delivery.stage === 'expired' ? 'never' : 'pending';
}

/** When a step happened, or null. */
export function timeOf(delivery: Delivery, step: Step): number | null {
  return delivery.stages.find((s) => s.stage === step)?.at ?? null;
}

function merge(marks: Mark[]): Mark {
  const first = marks[0];
  if (first === undefined) return 'pending';
  if (marks.every((mark) => mark === first)) return first;
  if (marks.includes('done')) return 'part';
  return marks.includes('pending') ? 'pending' : 'skipped';
}

/** True once the recipient has it in front of it: consumed or answered. */
export function wasRead(delivery: Delivery): boolean {
  return delivery.stage === 'consumed' || delivery.stage === 'answered';
}

/** One delivery's present truth in plain words. */
export function words(delivery: Delivery, now: number): string {
  if (delivery.note !== '') return delivery.note;
  const at = (step: Step) => {
    const time = timeOf(delivery, step);
    return time === null ? '' : ` ${clock(time, now)}`;
  };
  switch (delivery.stage) {
    case 'accepted':
      return 'accepted, being stored';
    case 'durable':
      return 'waiting for its next turn';
    case 'woken':
      return `woken${at('woken')}, not picked up yet`;
    case 'handed':
      return `handed over${at('handed')}`;
    case 'consumed':
      return `read${at('consumed')}`;
    case 'answered':
      return `answered${at('answered')}`;
    case 'expired':
      return 'expired unread';
  }
}

function toneOf(deliveries: Delivery[]): Tone {
  if (deliveries.some((d) => d.stage === 'expired')) return 'bad';
  if (deliveries.length > 0 && deliveries.every(wasRead)) return 'good';
  return deliveries.every((d) => d.stage === 'handed' || wasRead(d)) ? 'plain' : 'wait';
}

/** A message's strip over all its recipients. */
export function summarize(message: Message, now: number): Summary {
  const { deliveries } = message;
  const marks = STEPS.map((step) => ({ step, mark: merge(deliveries.map((d) => markOf(d, step))) }));
  return { marks, words: summaryWords(deliveries, now), tone: toneOf(deliveries) };
}

function summaryWords(deliveries: Delivery[], now: number): string {
  const [only] = deliveries;
  if (only === undefined) return 'no recipient';
  if (deliveries.length === 1) return words(only, now);
  const all = deliveries.length;
  const expired = deliveries.filter((d) => d.stage === 'expired').length;
  if (expired > 0) return `expired unread for ${expired} of ${all}`;
  const answered = deliveries.filter((d) => d.stage === 'answered').length;
  if (answered === all) return `answered by all ${all}`;
  const read = deliveries.filter(wasRead).length;
  if (read === all) return `read by all ${all}`;
  const handed = deliveries.filter((d) => d.stage === 'handed').length;
  if (read === 0 && handed === all) return `handed over to all ${all}`;
  return `read by ${read} of ${all}`;
}
