// For unit tests: what Go says in the same words, as tables of [given, said].

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';

const table = v.pipe(v.array(v.tuple([v.number(), v.string()])), v.nonEmpty());

export function said(name: 'spans' | 'sizes' | 'counts'): [number, string][] {
  const file = join(import.meta.dirname, '../../../backend/bridge/testdata', `${name}.json`);
  return v.parse(table, JSON.parse(readFileSync(file, 'utf8')));
}
