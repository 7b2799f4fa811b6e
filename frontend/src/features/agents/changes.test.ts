import { describe, expect, it } from 'vitest';
import type { AgentChange } from '../../lib/api';
import { summary } from './changes';

const edits = (...verbs: AgentChange['edits'][number]['verb'][]) =>
  verbs.map((verb, i) => ({ path: `/home/x/${i}`, verb, adds: '', diff: [] }));

describe('PGE-13 a change is a sentence first', () => {
  it.each([
    [edits(), 'connect', 'Nothing needs to be changed.'],
    [edits('makes'), 'connect', 'Bridge will make 1 file.'],
    [edits('changes', 'makes', 'makes'), 'connect', 'Bridge will change 1 file and make 2 files.'],
    [
      edits('changes', 'removes', 'makes'),
      'connect',
      'Bridge will change 1 file, make 1 file and remove 1 file.',
    ],
    [edits('changes', 'removes'), 'disconnect', 'Bridge will change 1 file and remove 1 file.'],
  ] as const)('%#', (list, does, words) => {
    expect(summary([...list], does)).toContain(words);
  });
});
