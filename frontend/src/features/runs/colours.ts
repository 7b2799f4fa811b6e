// Which colours the lines of a change have: each side of a hunk is read as the text that
// it is, so that a comment or a string goes on over lines.

import type { Token } from '../../lib/highlight';
import type { DiffLine } from './diff';

/** Beyond this a file is drawn plain: nobody reads so much, and it would take its time. */
export const MOST_LINES = 4000;
export const MOST_CHARS = 400_000;

const BY_NAME: Record<string, string> = {
  dockerfile: 'dockerfile',
  makefile: 'makefile',
  gnumakefile: 'makefile',
  'go.mod': 'go',
  '.gitconfig': 'ini',
  '.editorconfig': 'ini',
};

const BY_ENDING: Record<string, string> = {
  bash: 'bash',
  c: 'c',
  cc: 'cpp',
  cjs: 'javascript',
  conf: 'ini',
  cpp: 'cpp',
  cs: 'csharp',
  css: 'css',
  diff: 'diff',
  go: 'go',
  graphql: 'graphql',
  h: 'c',
  hpp: 'cpp',
  html: 'xml',
  ini: 'ini',
  java: 'java',
  js: 'javascript',
  json: 'json',
  jsx: 'javascript',
  kt: 'kotlin',
  less: 'less',
  lua: 'lua',
  md: 'markdown',
  mjs: 'javascript',
  mk: 'makefile',
  mts: 'typescript',
  patch: 'diff',
  php: 'php',
  pl: 'perl',
  py: 'python',
  r: 'r',
  rb: 'ruby',
  rs: 'rust',
  scss: 'scss',
  sh: 'bash',
  sql: 'sql',
  svelte: 'xml',
  svg: 'xml',
  swift: 'swift',
  toml: 'ini',
  ts: 'typescript',
  tsx: 'typescript',
  vue: 'xml',
  wasm: 'wasm',
  xml: 'xml',
  yaml: 'yaml',
  yml: 'yaml',
};

/** The language of a file by its name; '' where none is known. */
export function languageOf(path: string): string {
  const name = (path.split('/').pop() ?? '').toLowerCase();
  return BY_NAME[name] ?? BY_ENDING[name.split('.').pop() ?? ''] ?? '';
}

type Highlight = (text: string, language: string) => Token[][] | null;

/** The tokens of each line, in the lines' order; null for a line that is drawn plain. */
export function coloured(lines: DiffLine[], language: string, highlight: Highlight): (Token[] | null)[] {
  const tokens: (Token[] | null)[] = lines.map(() => null);
  const chars = lines.reduce((sum, line) => sum + line.text.length, 0);
  if (language === '' || lines.length > MOST_LINES || chars > MOST_CHARS) return tokens;
  let begin = 0;
  for (let i = 0; i <= lines.length; i++) {
    if (i < lines.length && lines[i]?.kind !== 'hunk') continue;
    side(begin, i, 'removed');
    side(begin, i, 'added');
    begin = i + 1;
  }
  return tokens;

  /** Reads one side of a hunk; what stands on both is taken from the new one. */
  function side(from: number, to: number, kind: 'added' | 'removed'): void {
    const at = lines
      .map((line, i) => ({ line, i }))
      .slice(from, to)
      .filter(({ line }) => line.kind === 'same' || line.kind === kind);
    const read = highlight(at.map(({ line }) => line.text).join('\n'), language);
    if (read === null || read.length !== at.length) return;
    for (const [n, { i }] of at.entries()) tokens[i] = read[n] ?? null;
  }
}
