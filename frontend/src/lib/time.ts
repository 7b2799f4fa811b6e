// Times for people. `now` is always passed in, so that one clock moves the page.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A short age: "now", "40 s", "2 min", "3 h", "5 d". A future time is "now". */
export function age(then: number, now: number): string {
  const ms = now - then;
  if (ms < 5 * SECOND) return 'now';
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

/** The same as a time past: "just now", "2 min ago". */
export function ago(then: number, now: number): string {
  const words = age(then, now);
  return words === 'now' ? 'just now' : `${words} ago`;
}

const two = (n: number) => String(n).padStart(2, '0');
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The clock of a day near: "14:02" today, else "3 Nov 14:02", with the year where it differs. */
export function clock(then: number, now: number): string {
  const at = new Date(then);
  const today = new Date(now);
  const hours = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (at.toDateString() === today.toDateString()) return hours;
  const year = at.getFullYear() === today.getFullYear() ? '' : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()] ?? ''}${year} ${hours}`;
}

/** The day alone: "21 Nov 2026". */
export function day(then: number): string {
  const at = new Date(then);
  return `${at.getDate()} ${MONTHS[at.getMonth()] ?? ''} ${at.getFullYear()}`;
}

/** A time near another one: only the clock with seconds on the same day, else everything. */
export function near(then: number, other: number): string {
  const whole = exact(then);
  const [day, time] = whole.split(' ');
  return exact(other).startsWith(day ?? '-') ? (time ?? whole) : whole;
}

/** Everything, for hovering and details: "2026-11-21 14:02:05". */
export function exact(then: number): string {
  const at = new Date(then);
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
