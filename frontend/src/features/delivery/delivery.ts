// The delivery strip in data and words: six steps, each with a shape, and one
// sentence that says the present truth.

import type { Delivery, DeliveryStep, Message, Step } from '../../lib/api';
import { clock } from '../../lib/time';

export const STEPS: readonly Step[] = ['accepted', 'durable', 'woken', 'handed', 'consumed', 'answered'];

export const STEP_NAMES: Record<Step, string> = {
  accepted: 'accepted',
  durable: 'stored',
  woken: 'woken',
  handed: 'handed over',
  consumed: 'read',
  answered: 'answered',
};

/**
 * done: every recipient; part: some of them; pending: none yet;
 * never: it cannot happen; skipped: a later step happened without it;
 * unsure: nobody knows.
 */
export type Mark = 'done' | 'part' | 'pending' | 'never' | 'skipped' | 'unsure';

export const MARK_NAMES: Record<Mark, string> = {
  done: 'done',
  part: 'done by some',
  pending: 'not yet',
  never: 'not possible',
  skipped: 'not needed',
  unsure: 'not known',
};

export type Tone = 'plain' | 'good' | 'wait' | 'warn' | 'bad';

export interface Summary {
  marks: { step: Step; mark: Mark }[];
  words: string;
  tone: Tone;
}

/** The mark of one step of one delivery. */
export function markOf(delivery: Delivery, step: Step): Mark {
  const index = STEPS.indexOf(step);
  const entry = entryOf(delivery, step);
  if (step === 'handed' && queueOf(delivery)?.sure === false) return 'unsure';
  if (entry?.at != null) return 'done';
  // A step that a later one overtook was not needed, whatever was possible.
  if (delivery.stages.some((s) => STEPS.indexOf(s.stage) > index && s.at !== null)) return 'skipped';
  if (entry?.possible === false) return 'never';
  return delivery.stage === 'expired' || delivery.stage === 'refused' ? 'never' : 'pending';
}

/**
 * Where a message is that was handed to the CLI's own queue and not read since,
 * null for any other.
 */
function queueOf(delivery: Delivery): { words: string; sure: boolean } | null {
  const handed = entryOf(delivery, 'handed');
  if (delivery.stage !== 'handed') return null;
  if (handed?.via === 'queue') return { words: 'in codex’s queue', sure: true };
  if (handed?.via === 'queue-unclear') return { words: `${handed.evidence}; not sent again`, sure: false };
  return null;
}

function entryOf(delivery: Delivery, step: Step): DeliveryStep | undefined {
  return delivery.stages.find((s) => s.stage === step);
}

/** What woke a session that has not begun its turn, as far as it is known. */
function wakeOf(delivery: Delivery): string {
  switch (entryOf(delivery, 'woken')?.via) {
    case 'wake-hook':
      return ' by its wake hook';
    case 'queue':
      return ' through codex’s queue';
    default:
      return '';
  }
}

/** When a step happened, or null. */
export function timeOf(delivery: Delivery, step: Step): number | null {
  return entryOf(delivery, step)?.at ?? null;
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
  const queue = queueOf(delivery);
  if (queue !== null) return queue.words;
  // The server's note is the present truth; a wake is told more exactly here.
  const waking = delivery.stage === 'woken' && /^(woken|$)/.test(delivery.note);
  if (delivery.note !== '' && !waking) return delivery.note;
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
      return `woken${at('woken')}${wakeOf(delivery)}, not picked up yet`;
    case 'handed':
      return `handed over${at('handed')}`;
    case 'consumed':
      return `read${at('consumed')}`;
    case 'answered':
      return `answered${at('answered')}`;
    case 'expired':
      return 'expired unread';
    case 'at-hub':
      return 'at the team’s hub, not on the other PC yet';
    case 'arrived':
      return 'on the other PC';
    case 'refused':
      return 'refused by the other PC';
  }
}

function toneOf(deliveries: Delivery[]): Tone {
  if (deliveries.some((d) => d.stage === 'expired' || d.stage === 'refused')) return 'bad';
  if (deliveries.some((d) => queueOf(d)?.sure === false)) return 'warn';
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
  const refused = deliveries.filter((d) => d.stage === 'refused').length;
  if (refused > 0) return `refused for ${refused} of ${all}`;
  const answered = deliveries.filter((d) => d.stage === 'answered').length;
  if (answered === all) return `answered by all ${all}`;
  const read = deliveries.filter(wasRead).length;
  if (read === all) return `read by all ${all}`;
  const handed = deliveries.filter((d) => d.stage === 'handed').length;
  if (read === 0 && handed === all) return `handed over to all ${all}`;
  return `read by ${read} of ${all}`;
}
