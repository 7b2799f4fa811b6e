// For unit tests: what Go says in the same words, as tables of [given, said].

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';

const folder = join(import.meta.dirname, '../../../backend/core/bridge/testdata');
const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));

const shown = v.object({
  name: v.string(),
  given: v.string(),
  visible: v.string(),
  line: v.string(),
  exact: v.string(),
});
/** What is made visible, and how. */
export const shownTexts = () => v.parse(v.pipe(v.array(shown), v.nonEmpty()), read('visible'));

const span = v.object({ from: v.number(), to: v.number(), form: v.picklist(['always', 'exact']) });
/** Which code points are shown, each by itself. */
export const hiddenSpans = () => v.parse(v.pipe(v.array(span), v.nonEmpty()), read('hidden'));

const table = v.pipe(v.array(v.tuple([v.number(), v.string()])), v.nonEmpty());

export function said(name: 'spans' | 'sizes' | 'counts'): [number, string][] {
  return v.parse(table, read(name));
}
