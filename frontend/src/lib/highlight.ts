// The colours of source text, by highlight.js: a chunk of its own, loaded where a change
// is shown. What comes back is text with kinds, never markup: what an agent wrote is no HTML.

import hljs from 'highlight.js/lib/common';
import dockerfile from 'highlight.js/lib/languages/dockerfile';

hljs.registerLanguage('dockerfile', dockerfile);

export interface Token {
  text: string;
  /** The outermost kind, as 'keyword'; '' for plain text. */
  kind: string;
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" };

/** The lines of a text, each as its tokens; null for a language that is not known. */
export function highlight(text: string, language: string): Token[][] | null {
  if (hljs.getLanguage(language) === undefined) return null;
  return readTokens(hljs.highlight(text, { language, ignoreIllegals: true }).value);
}

/** Reads what highlight.js writes: spans with a class, and escaped text. */
export function readTokens(html: string): Token[][] {
  const lines: Token[][] = [[]];
  const kinds: string[] = [];
  for (const piece of html.split(/(<span class="[^"]*">|<\/span>)/)) {
    const open = /^<span class="(?:hljs-)?([\w-]*)/.exec(piece);
    if (open !== null) kinds.push(open[1] ?? '');
    else if (piece === '</span>') kinds.pop();
    else if (piece !== '') {
      const plain = piece.replace(/&(amp|lt|gt|quot|#x27);/g, (_, name: string) => ENTITIES[name] ?? '');
      for (const [i, text] of plain.split('\n').entries()) {
        if (i > 0) lines.push([]);
        if (text !== '') lines.at(-1)?.push({ text, kind: kinds.at(-1) ?? '' });
      }
    }
  }
  return lines;
}
