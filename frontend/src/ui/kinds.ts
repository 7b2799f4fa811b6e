// Agent kinds by shape, hue and name: no vendor logos.

const GLYPHS: Record<string, string> = {
  claude: '◆',
  codex: '■',
  opencode: '●',
  antigravity: '▲',
  owner: '★',
};

/** The kind's shape; an unknown kind has one of its own. */
export function glyph(agent: string): string {
  return GLYPHS[agent] ?? '◇';
}

/** The kind's hue, which is never all that tells it. */
export function hue(agent: string): string {
  return agent in GLYPHS ? `var(--${agent})` : 'var(--soft)';
}
