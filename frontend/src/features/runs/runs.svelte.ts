// How the list of jobs is narrowed, kept while the browser's tab lives: going to a
// job and back, or loading anew, changes nothing.

import { NO_FILTER, OUTCOMES, type RunFilter } from './runs';

const KEY = 'bridge.runs';

function stored(): RunFilter {
  try {
    const value = JSON.parse(sessionStorage.getItem(KEY) ?? '{}') as Partial<
      Record<keyof RunFilter, unknown>
    >;
    const text = (field: unknown) => (typeof field === 'string' ? field : '');
    const outcome = OUTCOMES.find((o) => o === value.outcome) ?? '';
    return { text: text(value.text), outcome, agent: text(value.agent), by: text(value.by) };
  } catch {
    return { ...NO_FILTER };
  }
}

/** How many ended jobs are drawn at first, and with each more. */
export const STEP = 50;

class RunList {
  filter: RunFilter = $state(stored());
  shown = $state(STEP);

  keep(): void {
    sessionStorage.setItem(KEY, JSON.stringify(this.filter));
  }

  clear(): void {
    this.filter = { ...NO_FILTER };
    this.shown = STEP;
  }
}

export const runList = new RunList();
