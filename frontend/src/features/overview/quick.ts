// Which needs are answered by a button in their row: those whose row shows the whole request.

import { isDiff } from '../approvals/approvals';
import type { Approval, Question } from '../../lib/api';
import { visibleParts } from '../../lib/visible';

/** A request of at most this many characters and lines fits into its row. */
const MOST = { characters: 240, lines: 3, options: 4, label: 40 };

/** Returns whether a row can show the text whole, without any hidden character. */
function fits(text: string): boolean {
  return (
    [...text].length <= MOST.characters &&
    text.split('\n').length <= MOST.lines &&
    !visibleParts(text, true).some((part) => part.hidden)
  );
}

/**
 * Returns whether one click in the row may allow the request. A choice, a change of files, a warning
 * and a prompt that only its terminal can answer need their card.
 */
export const allowsInRow = (a: Approval | undefined): a is Approval =>
  a !== undefined &&
  a.state === 'asked' &&
  !a.onlyTold &&
  !a.caution &&
  (a.choices ?? []).length === 0 &&
  a.kind !== 'change' &&
  a.kind !== 'edit' &&
  a.detail !== '' &&
  !isDiff(a.detail) &&
  fits(a.detail);

/** Returns whether the options of a question stand in its row. A long question needs its card. */
export const choosesInRow = (q: Question | undefined): q is Question =>
  q?.state === 'open' &&
  q.options.length > 0 &&
  q.options.length <= MOST.options &&
  q.options.every(
    ({ label, consequence }) => [...label].length <= MOST.label && fits(label) && fits(consequence),
  ) &&
  fits(q.context);
