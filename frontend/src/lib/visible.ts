// What agents, jobs, other PCs and names say, with every hidden character made visible, as
// bridge.Visible does it in Go. Both are held to the tables in backend/core/bridge/testdata.

type Span = readonly [from: number, to: number];

/** What a reader cannot see, or what turns the direction of the text. */
const HIDDEN: Span[] = [
  [0x00ad, 0x00ad],
  [0x034f, 0x034f],
  [0x061c, 0x061c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfdd0, 0xfdef],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0xfffe, 0xffff],
  [0x13430, 0x1343f],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
];

/** What is shown besides where somebody approves: spaces that are not the space and the like. */
const UNCLEAR: Span[] = [
  [0x00a0, 0x00a0],
  [0x0600, 0x0605],
  [0x06dd, 0x06dd],
  [0x070f, 0x070f],
  [0x0890, 0x0891],
  [0x08e2, 0x08e2],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x2800, 0x2800],
  [0x3000, 0x3000],
  [0xe000, 0xf8ff],
  [0x110bd, 0x110bd],
  [0x110cd, 0x110cd],
  [0xf0000, 0xffffd],
  [0x100000, 0x10fffd],
];

const PICTOGRAPHS: Span[] = [
  [0x00a9, 0x00a9],
  [0x00ae, 0x00ae],
  [0x203c, 0x203c],
  [0x2049, 0x2049],
  [0x2122, 0x2122],
  [0x2139, 0x2139],
  [0x2190, 0x21ff],
  [0x2300, 0x23ff],
  [0x24c2, 0x24c2],
  [0x25a0, 0x27bf],
  [0x2900, 0x297f],
  [0x2b00, 0x2bff],
  [0x3030, 0x3030],
  [0x303d, 0x303d],
  [0x3297, 0x3297],
  [0x3299, 0x3299],
  [0x1f000, 0x1faff],
];

const IDEOGRAPHS: Span[] = [
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xf900, 0xfaff],
  [0x20000, 0x323af],
];

/** The scripts that are written with joiners. */
const JOINING: Span[] = [
  [0x0620, 0x06d3],
  [0x0710, 0x074f],
  [0x0750, 0x077f],
  [0x08a0, 0x08c9],
  [0x0900, 0x097f],
  [0x0980, 0x09ff],
  [0x0a00, 0x0a7f],
  [0x0a80, 0x0aff],
  [0x0b00, 0x0b7f],
  [0x0b80, 0x0bff],
  [0x0c00, 0x0c7f],
  [0x0c80, 0x0cff],
  [0x0d00, 0x0d7f],
  [0x0d80, 0x0dff],
  [0x1000, 0x109f],
  [0x1780, 0x17b3],
];

const NON_JOINER = 0x200c;
const JOINER = 0x200d;
const TEXT_STYLE = 0xfe0e;
const EMOJI_STYLE = 0xfe0f;
const KEYCAP = 0x20e3;
const BLACK_FLAG = 0x1f3f4;

/** The three flags that Unicode makes of tags, behind the black flag. */
const FLAGS = ['gbeng', 'gbsct', 'gbwls'].map(
  (region) =>
    [...region].map((c) => String.fromCodePoint(0xe0000 + (c.codePointAt(0) ?? 0))).join('') + '\u{e007f}',
);

const at = (spans: Span[], r: number) => spans.findIndex(([from, to]) => r >= from && r <= to);
const within = (spans: Span[], r: number) => at(spans, r) >= 0;
const isControl = (r: number) => r < 0x20 || (r >= 0x7f && r <= 0x9f);
const isHidden = (r: number) =>
  r !== 0x0a && r !== 0x09 && (isControl(r) || within(HIDDEN, r) || (r & 0xfffe) === 0xfffe);

const nameOf = (r: number) =>
  isControl(r)
    ? `\\x${r.toString(16).padStart(2, '0')}`
    : `⟨U+${r.toString(16).toUpperCase().padStart(4, '0')}⟩`;

/** A piece of a text; where `hidden`, it is the name of one character that nobody would see. */
export interface Part {
  text: string;
  hidden: boolean;
}

/** Whether a hidden character belongs to the emoji or the word around it. */
function belongs(before: number, previous: number, r: number, next: number): boolean {
  if (r === EMOJI_STYLE && ((previous >= 0x30 && previous <= 0x39) || previous === 0x23 || previous === 0x2a))
    return next === KEYCAP;
  if (r === EMOJI_STYLE || r === TEXT_STYLE) return within(PICTOGRAPHS, previous);
  if (r >= 0xe0100 && r <= 0xe01ef) return within(IDEOGRAPHS, previous);
  if (r === JOINER && within(PICTOGRAPHS, next))
    return within(PICTOGRAPHS, previous) || (previous === EMOJI_STYLE && within(PICTOGRAPHS, before));
  if (r !== JOINER && r !== NON_JOINER) return false;
  const script = at(JOINING, previous);
  return script >= 0 && script === at(JOINING, next);
}

/** Nothing but these: the commonest text has nothing to be shown. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

/**
 * The text in pieces, hidden characters by their names. `exact` is for what somebody
 * approves: joiners, selectors, carriage returns and odd spaces are shown, too.
 */
export function visibleParts(text: string, exact = false): Part[] {
  if (PLAIN.test(text)) return text === '' ? [] : [{ text, hidden: false }];
  const parts: Part[] = [];
  let plain = '';
  const name = (r: number) => {
    if (plain !== '') parts.push({ text: plain, hidden: false });
    plain = '';
    parts.push({ text: nameOf(r), hidden: true });
  };
  let [before, previous] = [-1, -1];
  for (let i = 0; i < text.length;) {
    const r = text.codePointAt(i) ?? 0;
    let size = r > 0xffff ? 2 : 1;
    const flag = exact || r !== BLACK_FLAG ? undefined : FLAGS.find((f) => text.startsWith(f, i + size));
    size += flag?.length ?? 0;
    const next = text.codePointAt(i + size) ?? -1;
    if (r === 0x0d && next === 0x0a && !exact) {
      // a line end of Windows is a line end
    } else if (
      (isHidden(r) && (exact || !belongs(before, previous, r, next))) ||
      (exact && within(UNCLEAR, r))
    ) {
      name(r);
    } else plain += text.slice(i, i + size);
    [before, previous] = [previous, r];
    i += size;
  }
  if (plain !== '') parts.push({ text: plain, hidden: false });
  return parts;
}

const joined = (parts: Part[]) => parts.map((part) => part.text).join('');

/** The text with hidden characters by their names; line ends and tabs stay. */
export const visible = (text: string): string => joined(visibleParts(text));

/** The same for a text that has one line: a line end is `\n`, a tab `\t`. */
export const visibleLine = (text: string): string =>
  joined(
    visibleParts(
      text.replace(/[\t-\r\x85\u2028\u2029]/g, (c) =>
        c === '\n' ? '\\n' : c === '\t' ? '\\t' : nameOf(c.codePointAt(0) ?? 0),
      ),
    ),
  );

/** The same for what somebody approves, where every hidden character is shown. */
export const visibleExact = (text: string): string => joined(visibleParts(text, true));

/** Whether a text of many lines, such as a change, has characters that a reader cannot see. */
export const hides = (text: string): boolean =>
  visibleParts(text.replaceAll('\r', '')).some((part) => part.hidden);

/** The attributes that are read or shown as text. */
const SHOWN = ['title', 'aria-label', 'aria-description', 'placeholder', 'alt'];

/**
 * Keeps all text below a node visible, whatever part of the page writes it: what changes is
 * looked at before it is drawn. A new part of the page cannot forget it. What is typed is
 * left as it is. Returns what ends it.
 */
export function keepVisible(root: Element): () => void {
  const watcher = new MutationObserver((changes) => {
    for (const { target, type, addedNodes, attributeName } of changes) {
      if (type === 'characterData') showText(target);
      else if (type === 'attributes') showAttribute(target as Element, attributeName ?? '');
      else for (const node of addedNodes) showAll(node);
    }
  });
  showAll(root);
  watcher.observe(root, {
    subtree: true,
    childList: true,
    characterData: true,
    attributes: true,
    attributeFilter: SHOWN,
  });
  return () => watcher.disconnect();
}

function showAll(node: Node): void {
  if (node.nodeType === Node.TEXT_NODE) showText(node);
  if (!(node instanceof Element)) return;
  for (const name of SHOWN) showAttribute(node, name);
  for (const child of node.childNodes) showAll(child);
}

function showText(node: Node): void {
  const text = node.nodeValue ?? '';
  if (PLAIN.test(text) || ['SCRIPT', 'STYLE', 'TEXTAREA'].includes(node.parentElement?.tagName ?? '')) return;
  const shown = visible(text);
  if (shown !== text) node.nodeValue = shown;
}

function showAttribute(element: Element, name: string): void {
  const text = element.getAttribute(name);
  if (text === null || PLAIN.test(text)) return;
  const shown = visible(text);
  if (shown !== text) element.setAttribute(name, shown);
}
