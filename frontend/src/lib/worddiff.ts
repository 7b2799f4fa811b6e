// What differs between two texts, word by word, for people to read.

export interface Piece {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** A piece of an unchanged stretch that is left out. */
export interface Gap {
  kind: 'gap';
  text: string;
}

/** The largest table that is made: two texts of 8,000 characters that share nothing at either end fit. */
const MOST_CELLS = 12_000_000;

const WORDS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;
const words = (text: string): string[] => text.match(WORDS) ?? [];

/** The pieces in their order; without the removed ones they are `after`, without the added ones `before`. */
export function wordDiff(before: string, after: string): Piece[] {
  const [a, b] = [words(before), words(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middle = differing(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const same = (list: string[]): Piece => ({ kind: 'same', text: list.join('') });
  return joined(
    readable([same(a.slice(0, start)), ...middle, same(end === 0 ? [] : a.slice(a.length - end))]),
  );
}

/** By the longest common subsequence; all of both where that would take too long. */
function differing(a: string[], b: string[]): Piece[] {
  const width = b.length + 1;
  if ((a.length + 1) * width > MOST_CELLS) {
    return [
      { kind: 'removed', text: a.join('') },
      { kind: 'added', text: b.join('') },
    ];
  }
  const longest = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => longest[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const pieces: Piece[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      pieces.push({ kind: 'same', text: a[i++] ?? '' });
      j++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      pieces.push({ kind: 'removed', text: a[i++] ?? '' });
    } else pieces.push({ kind: 'added', text: b[j++] ?? '' });
  }
  return joined(pieces);
}

/** A space or a comma that two changes share would tear them into single words. */
function readable(pieces: Piece[]): Piece[] {
  const isChange = (piece: Piece | undefined) => piece !== undefined && piece.kind !== 'same';
  return joined(pieces).flatMap((piece, i, all): Piece[] => {
    const torn = piece.kind === 'same' && !/[\p{L}\p{N}\n]/u.test(piece.text);
    if (!torn || !isChange(all[i - 1]) || !isChange(all[i + 1])) return [piece];
    return [
      { kind: 'removed', text: piece.text },
      { kind: 'added', text: piece.text },
    ];
  });
}

/** Neighbours of one kind are one piece, and in a change what went comes before what came. */
function joined(pieces: Piece[]): Piece[] {
  const all: Piece[] = [];
  let change = { removed: '', added: '' };
  const end = () => {
    if (change.removed !== '') all.push({ kind: 'removed', text: change.removed });
    if (change.added !== '') all.push({ kind: 'added', text: change.added });
    change = { removed: '', added: '' };
  };
  for (const { kind, text } of pieces) {
    if (text === '') continue;
    if (kind !== 'same') {
      change[kind] += text;
      continue;
    }
    end();
    const last = all.at(-1);
    if (last?.kind === 'same') last.text += text;
    else all.push({ kind, text });
  }
  end();
  return all;
}

/** An unchanged stretch keeps so much beside a change, and is shortened only where that saves something. */
const BESIDE = 90;
const LEAST = 3 * BESIDE;

/** The same with the middle of long unchanged stretches left out, at the ends of words. */
export function shortened(pieces: Piece[]): (Piece | Gap)[] {
  return pieces.flatMap((piece, i): (Piece | Gap)[] => {
    const { text } = piece;
    if (piece.kind !== 'same' || text.length < LEAST || pieces.length === 1) return [piece];
    const from = i === 0 ? 0 : Math.max(BESIDE, text.indexOf(' ', BESIDE));
    const space = text.lastIndexOf(' ', text.length - BESIDE);
    const to = i === pieces.length - 1 ? text.length : space > from ? space + 1 : text.length - BESIDE;
    return [
      { kind: 'same', text: text.slice(0, from) },
      { kind: 'gap', text: text.slice(from, to) },
      { kind: 'same', text: text.slice(to) },
    ].filter(({ text: part }) => part !== '') as (Piece | Gap)[];
  });
}
