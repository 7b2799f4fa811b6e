// Agent kinds by shape and name: no vendor logos.

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
