// What stands in the search field beside words: from:NAME, after: and before: a time.

export interface Asked {
  /** What is left to look for. */
  words: string;
  from: string;
  /** In epoch milliseconds, null for no bound. */
  after: number | null;
  before: number | null;
  /** Why it cannot be asked, a sentence, or ''. */
  problem: string;
}

const FILTER = /(^|\s)(from|after|before):(\S*)/gi;
const HOUR = /^(\d{1,2}):(\d{2})$/;
const DAY = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2}))?$/;
const DAY_LONG = 86_400_000;

/** Returns the time of "13:30", the last one that has been, or of "2026-11-27"; null for anything else. */
export function timeOf(text: string, now: number): number | null {
  const clock = HOUR.exec(text);
  if (clock !== null) {
    const at = new Date(now);
    if (Number(clock[1]) > 23 || Number(clock[2]) > 59) return null;
    at.setHours(Number(clock[1]), Number(clock[2]), 0, 0);
    return at.getTime() > now ? at.getTime() - DAY_LONG : at.getTime();
  }
  const day = DAY.exec(text);
  if (day === null) return null;
  const [year = 0, month = 0, date = 0, hour = 0, minute = 0] = day.slice(1).map((part) => Number(part ?? 0));
  const at = new Date(year, month - 1, date, hour, minute);
  const exists = at.getMonth() === month - 1 && at.getDate() === date && at.getHours() === hour;
  return exists && minute < 60 ? at.getTime() : null;
}

/** Reads what was typed. What stands in quotes is looked for as it is. */
export function readFilters(typed: string, now: number): Asked {
  const asked: Asked = { words: '', from: '', after: null, before: null, problem: '' };
  const outside = (part: string) =>
    part.replace(FILTER, (_, space: string, name: string, value: string) => {
      const filter = name.toLowerCase();
      if (filter === 'from') {
        asked.from = value;
        if (value === '') asked.problem ||= 'Type a name after “from:”, as in from:api.';
        return space;
      }
      const time = timeOf(value, now);
      if (time === null)
        asked.problem ||= `“${filter}:${value}” is no time: type ${filter}:13:30 or ${filter}:2026-11-27.`;
      else asked[filter as 'after' | 'before'] = time;
      return space;
    });
  const parts = typed.split('"');
  asked.words = parts
    .map((part, i) => (i % 2 === 0 ? outside(part) : part))
    .join('"')
    .trim();
  if (asked.after !== null && asked.before !== null && asked.after >= asked.before)
    asked.problem ||= 'Nothing is after and before these times: “after:” has to be earlier than “before:”.';
  // The server lists messages without words only where it has a lower bound or a name.
  if (asked.before !== null && asked.words === '' && asked.from === '') asked.after ??= 0;
  return asked;
}
