// Structural sharing: a newly fetched value takes over the unchanged parts of the one before,
// so that whatever is computed and drawn from those parts is not computed and drawn again.

/** The members that identify an item of a list; the first one that an item has counts. */
const IDENTITIES = ['id', 'job', 'key', 'name'] as const;

type Value = Record<string, unknown>;

const isObject = (value: unknown): value is Value => typeof value === 'object' && value !== null;

/** Returns the identity of a list's item, or undefined if it has none. */
function identity(item: unknown): unknown {
  if (!isObject(item)) return undefined;
  for (const member of IDENTITIES) if (typeof item[member] === 'string') return item[member];
  return undefined;
}

/**
 * Returns `next` with each unchanged part replaced by the same part of `before`; if nothing
 * changed, it returns `before` itself. Both are values as JSON has them, and neither is changed.
 */
export function share<T>(before: unknown, next: T): T {
  return shared(before, next) as T;
}

function shared(before: unknown, next: unknown): unknown {
  if (Object.is(before, next) || !isObject(before) || !isObject(next)) return next;
  if (Array.isArray(next)) return Array.isArray(before) ? sharedList(before, next) : next;
  return Array.isArray(before) ? next : sharedObject(before, next);
}

function sharedList(before: unknown[], next: unknown[]): unknown[] {
  let known: Map<unknown, unknown> | undefined;
  let isSame = before.length === next.length;
  const list = next.map((item, i) => {
    const id = identity(item);
    let old = before[i];
    if (id !== identity(old)) {
      known ??= new Map(before.map((each) => [identity(each), each]));
      old = id === undefined ? undefined : known.get(id);
    }
    const part = shared(old, item);
    isSame &&= part === before[i];
    return part;
  });
  return isSame ? before : list;
}

function sharedObject(before: Value, next: Value): Value {
  let isSame = true;
  let members = 0;
  const object: Value = {};
  for (const member in next) {
    const part = (object[member] = shared(before[member], next[member]));
    isSame &&= part === before[member] && (part !== undefined || member in before);
    members++;
  }
  return isSame && members === Object.keys(before).length ? before : object;
}
