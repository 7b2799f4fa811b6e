// Folders for people, on any system.

/** The last part of a folder: the project's name in lists. */
export function projectName(folder: string): string {
  const parts = folder.split(/[\\/]+/).filter((part) => part !== '');
  return parts.at(-1) ?? folder;
}

/**
 * The folder in at most `max` characters where that is possible, shortened in
 * the middle between whole parts: "/home/…/web/api-server". First and last
 * part always stay whole.
 */
export function shortPath(folder: string, max: number): string {
  if (folder.length <= max) return folder;
  const separator = folder.includes('\\') && !folder.includes('/') ? '\\' : '/';
  const parts = folder.split(separator);
  const root = parts[0] === '' ? `${separator}${parts[1] ?? ''}` : (parts[0] ?? '');
  const rest = parts.slice(parts[0] === '' ? 2 : 1);
  let tail = rest.pop();
  if (tail === undefined || rest.length === 0) return folder;
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const longer: string = `${next}${separator}${tail}`;
    if (`${root}${separator}…${separator}${longer}`.length > max) break;
    tail = longer;
  }
  return `${root}${separator}…${separator}${tail}`;
}
