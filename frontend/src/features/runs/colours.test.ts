import { describe, expect, it } from 'vitest';
import { highlight, readTokens } from '../../lib/highlight';
import { coloured, languageOf, MOST_LINES } from './colours';
import { readPatch } from './diff';

const PATCH = `diff --git a/x.go b/x.go
@@ -1,4 +1,5 @@
 package x
-/* old
-   words */
+// <b>new & "said"</b>
+const Name = "a"
+
 func F() int { return 1 }
\\ No newline at end of file
@@ -9,1 +10,1 @@
-var a = 1
+var b = 2`;

describe('JOB-18 the colours of a change', () => {
  it('knows languages by name', () => {
    expect(languageOf('a/b/x.go')).toBe('go');
    expect(languageOf('Makefile')).toBe('makefile');
    expect(languageOf('build/Dockerfile')).toBe('dockerfile');
    expect(languageOf('x.unheard')).toBe('');
    expect(languageOf('')).toBe('');
    for (const name of ['x.ts', 'x.svelte', 'x.toml', 'x.wasm', 'Dockerfile', 'x.graphql', 'x.kt']) {
      expect(highlight('x', languageOf(name)), name).not.toBeNull();
    }
  });

  it('gives every line back as it was, with kinds beside', () => {
    const lines = readPatch(PATCH);
    const tokens = coloured(lines, 'go', highlight);
    for (const [i, line] of lines.entries()) {
      if (line.kind === 'hunk' || line.kind === 'note') expect(tokens[i]).toBeNull();
      else expect(tokens[i]?.map((t) => t.text).join('')).toBe(line.text);
    }
    const kinds = (text: string) => tokens[lines.findIndex((l) => l.text === text)]?.map((t) => t.kind);
    expect(kinds('package x')).toContain('keyword');
    // A comment of the old side goes on over its lines, and colours nothing of the new side.
    expect(kinds('   words */')).toEqual(['comment']);
    expect(kinds('// <b>new & "said"</b>')).toEqual(['comment']);
    expect(kinds('const Name = "a"')).toContain('string');
  });

  it('takes what an agent wrote as text', () => {
    const text = '<img src=x onerror=alert(1)> </span> &lt; \'"';
    expect(
      (highlight(text, 'xml') ?? [])
        .flat()
        .map((t) => t.text)
        .join(''),
    ).toBe(text);
    expect(readTokens('a<span class="hljs-title function_">f</span>&amp;lt;')).toEqual([
      [
        { text: 'a', kind: '' },
        { text: 'f', kind: 'title' },
        { text: '&lt;', kind: '' },
      ],
    ]);
  });

  it('draws plain what is too long or unknown', () => {
    const many = Array.from({ length: MOST_LINES + 1 }, (_, i) => ({
      kind: 'added' as const,
      text: 'x',
      old: null,
      new: i,
    }));
    expect(coloured(many, 'go', highlight).every((t) => t === null)).toBe(true);
    expect(coloured(many.slice(1), 'go', highlight).every((t) => t !== null)).toBe(true);
    expect(coloured(readPatch(PATCH), 'nothing', highlight).every((t) => t === null)).toBe(true);
  });
});
