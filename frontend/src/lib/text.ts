// Long text made short without cutting words.

/**
 * About `max` characters, ending at a word; '…' says that more follows. A text
 * that is little longer stays whole: "more" must be worth the click.
 */
export function excerpt(text: string, max: number): { text: string; more: boolean } {
  if (text.length <= max * 1.2) return { text, more: false };
  const cut = text.slice(0, max + 1);
  const space = Math.max(cut.lastIndexOf(' '), cut.lastIndexOf('\n'));
  // One very long word (a path, a hash) has to be cut somewhere.
  const end = space > max / 2 ? space : max;
  return { text: `${text.slice(0, end).trimEnd()}…`, more: true };
}

/** The text on one line for lists, without the commonest marks of markdown. */
export function oneLine(text: string): string {
  return text
    .replace(/```\w*\n/g, '')
    .replace(/```/g, '')
    .replace(/^ {0,3}(#{1,6}|>) /gm, '')
    .replace(/`([^`\n]+)`/g, '$1')
    .replace(/\*\*([^*\n]+)\*\*/g, '$1')
    .replace(/(?<![\w*])\*([^*\s](?:[^*\n]*[^*\s])?)\*(?![\w*])/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
}

/** "1 message", "3 messages", "? messages" for a number that is not known. */
export function count(n: number | null, noun: string): string {
  return `${n ?? '?'} ${noun}${n === 1 ? '' : 's'}`;
}

/** A number of unread messages: '' for none, "?" for one that is not known. */
export function unreadNumber(unread: number | null): string {
  return unread === 0 ? '' : String(unread ?? '?');
}

/** How large: "0 B", "12 kB", "3.4 MB". */
export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = n;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  const digits = unit > 0 && value < 9.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${units[unit] ?? ''}`;
}

const names = new Intl.Collator(undefined, { numeric: true });

/** Orders names as people do: numbers in them by their value, api-9 before api-54. */
export function byName(a: string, b: string): number {
  return names.compare(a, b);
}
