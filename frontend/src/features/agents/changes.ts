// A change of an agent's files in one sentence, before its lines.

import type { AgentChange } from '../../lib/api';
import { count } from '../../lib/text';

type Edit = AgentChange['edits'][number];

const VERBS: Record<Edit['verb'], string> = { changes: 'change', makes: 'make', removes: 'remove' };

/** Returns what happens to how many files: "change 1 file and make 2 files". */
function filesWords(edits: Edit[]): string {
  const parts = (['changes', 'makes', 'removes'] as const).flatMap((verb) => {
    const files = edits.filter((edit) => edit.verb === verb).length;
    return files === 0 ? [] : [`${VERBS[verb]} ${count(files, 'file')}`];
  });
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

/** Returns the sentence about a change, and what it leaves alone. */
export function summary(edits: Edit[], does: 'connect' | 'disconnect'): string {
  if (edits.length === 0) return 'Nothing needs to be changed.';
  const what = `Bridge will ${filesWords(edits)}.`;
  return does === 'disconnect'
    ? `${what} Your own entries stay, letter for letter.`
    : `${what} Your own entries stay, Bridge keeps a copy of each file, and Disconnect undoes exactly this.`;
}
