// Addresses within the page: #/overview, #/sessions/<name>,
// #/sessions/<name>/<child id>, #/decisions/<topic>, #/runs/<job>/<log, changes or result>.
// A message opened in the details is ?m=<id>, so that "back" closes it. What is searched for and
// how a list is sorted stand there, too: #/search?q=<words>.

export type Place =
  | { page: 'needs' }
  | { page: 'overview' }
  | { page: 'sessions'; sort?: string; find?: string; state?: string; ended?: string }
  | { page: 'session'; name: string }
  | { page: 'child'; name: string; child: string }
  | { page: 'decisions' }
  | { page: 'topic'; topic: string }
  | { page: 'runs' }
  | { page: 'run'; job: string; tab: RunTab }
  | { page: 'search'; q?: string; kind?: string }
  | { page: 'storage' }
  | { page: 'network' }
  | { page: 'settings' };

/** What of a job is shown; '' is the one that fits its state. */
export type RunTab = '' | 'log' | 'changes' | 'result';

export interface Route {
  place: Place;
  /** The message shown in the details, else null. */
  message: string | null;
}

/** Reads a location hash; what it does not know is the overview. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [page = '', ...rest] = path.split('/').map(decode);
  const params = new URLSearchParams(query);
  const place = placeOf(page, rest);
  const shown = Object.fromEntries(
    (PARAMS[place.page] ?? []).flatMap((name) => {
      const value = params.get(name) ?? '';
      return value === '' ? [] : [[name, value]];
    }),
  );
  return { place: { ...place, ...shown }, message: params.get('m') };
}

/** What of a page stands in its address: how its list is chosen. */
const PARAMS: Partial<Record<Place['page'], string[]>> = {
  search: ['q', 'kind'],
  sessions: ['sort', 'find', 'state', 'ended'],
};

function placeOf(page: string, [first = '', second = '']: string[]): Place {
  switch (page) {
    case 'needs':
    case 'search':
    case 'storage':
    case 'network':
    case 'settings':
      return { page };
    case 'sessions':
      if (first === '') return { page: 'sessions' };
      return second === '' ? { page: 'session', name: first } : { page: 'child', name: first, child: second };
    case 'runs':
      return first === '' ? { page: 'runs' } : { page: 'run', job: first, tab: tabOf(second) };
    case 'decisions':
      return first === '' ? { page: 'decisions' } : { page: 'topic', topic: first };
    default:
      return { page: 'overview' };
  }
}

const tabOf = (word: string): RunTab =>
  word === 'log' || word === 'changes' || word === 'result' ? word : '';

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a place, and of a message opened there. */
export function href(place: Place, message: string | null = null): string {
  const shown = place as unknown as Record<string, string | undefined>;
  const params = (PARAMS[place.page] ?? []).map((name): [string, string] => [name, shown[name] ?? '']);
  if (message !== null) params.push(['m', message]);
  const query = params
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
  return `#/${pathOf(place)}${query === '' ? '' : `?${query}`}`;
}

function pathOf(place: Place): string {
  switch (place.page) {
    case 'session':
      return `sessions/${encodeURIComponent(place.name)}`;
    case 'child':
      return `sessions/${encodeURIComponent(place.name)}/${encodeURIComponent(place.child)}`;
    case 'run':
      return `runs/${encodeURIComponent(place.job)}${place.tab === '' ? '' : `/${place.tab}`}`;
    case 'topic':
      return `decisions/${encodeURIComponent(place.topic)}`;
    default:
      return place.page;
  }
}
