// Folders for people, on any system.

/** The last part of a folder: the project's name in lists. */
export function projectName(folder: string): string {
  const parts = folder.split(/[\\/]+/).filter((part) => part !== '');
  return parts.at(-1) ?? folder;
}

/** Returns whether a path is that folder or lies in it. */
export function isWithin(folder: string, path: string): boolean {
  const top = folder.replace(/[\\/]+$/, '');
  return path === folder || (path.startsWith(top) && /^[\\/]/.test(path.slice(top.length)));
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
  const rooted = parts[0] === '';
  const root = rooted ? `${separator}${parts[1] ?? ''}` : (parts[0] ?? '');
  const rest = parts.slice(rooted ? 2 : 1);
  if (rest.length < 2) return folder;
  const shortened = (kept: number) => [root, '…', ...rest.slice(-kept)].join(separator);
  let kept = 1;
  while (kept + 1 < rest.length && shortened(kept + 1).length <= max) kept++;
  return shortened(kept);
}
