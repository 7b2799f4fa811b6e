// The picture of what goes on, in pixels and words, without markup: a lane for each
// live session with its jobs under it, time to the right. Everything in it can be
// pointed at, says who, what, when and how far, and opens what it stands for.

import { scaleTime } from 'd3-scale';
import type { Activity, ActivityMark, Approval, Peer, Question, Run, Way } from '../../lib/api';
import type { Place } from '../../lib/route';
import { count, excerpt, oneLine } from '../../lib/text';
import { clock } from '../../lib/time';
import { askWords, answererWords } from '../approvals/approvals';
import { duration, isEnded, titleOf } from '../runs/runs';
import { byProject } from '../sessions/sessions';

/** The part of a session that the picture depends on. */
export type LanePeer = Pick<Peer, 'id' | 'name' | 'agent' | 'cwd' | 'state'>;

/** Returns the part of a session that the picture depends on. */
export const lanePeer = ({ id, name, agent, cwd, state }: Peer): LanePeer => ({
  id,
  name,
  agent,
  cwd,
  state,
});

export interface Facts {
  peers: LanePeer[];
  runs: Run[];
  approvals: Approval[];
  questions: Question[];
  activity: Activity;
}

export interface View {
  from: number;
  to: number;
  now: number;
  width: number;
  /** The session that it is about, with those that it deals with; '' for all. */
  about: string;
  /** Nobody is folded away. */
  all: boolean;
}

export const LANE = 30;
export const JOB = 20;
const AXIS = 22;
/** Up to so many sessions nobody is folded away; of more, so many of those at work are shown. */
export const FEW = 8;
export const MOST = 8;
/** Job rows under a lane, and of many lanes; the others are on their own page. */
export const MOST_JOBS = 6;
export const FEW_JOBS = 2;
/** How near a pointer must come, in pixels. */
const NEAR = 9;
const OWNER = 'you';

export type Opening = { message: string } | { place: Place };

export type MarkKind = 'work' | 'wake' | 'message' | 'decision' | 'approval' | 'question' | 'job';

/** Something that happened. */
export interface Mark {
  key: string;
  kind: MarkKind;
  at: number;
  /** Where it is pointed at. */
  x: number;
  y: number;
  /** Where else: along a line, or, of a bar, its end. */
  points: [number, number][];
  /** Half the height of a bar, 0 of all else. */
  half: number;
  /** What it is drawn with. */
  path: string;
  /** Not over yet: an open approval or question, a message that waits, a job at work. */
  open: boolean;
  agent: string;
  who: string;
  what: string;
  when: string;
  how: string;
  opens: Opening;
}

export interface Lane {
  name: string;
  agent: string;
  /** 'away' for one that gave a job and left. */
  state: Peer['state'] | 'away' | 'owner';
  y: number;
  /** The line that its marks stand on. */
  middle: number;
  height: number;
  /** Its jobs that have no row. */
  more: number;
}

/** A job's bar and the words at it. */
export interface JobBar {
  job: string;
  agent: string;
  x: number;
  y: number;
  width: number;
  /** Of the bar, as far as it says to be; null where it says nothing. */
  done: number | null;
  status: Run['status'];
  words: string;
  wordsX: number;
  anchor: 'start' | 'end';
}

export interface Picture {
  height: number;
  lanes: Lane[];
  jobs: JobBar[];
  /** In the order of time. */
  marks: Mark[];
  ticks: { x: number; words: string }[];
  /** Where the present is, null outside of the view. */
  present: number | null;
  /** Up to where nobody saw who was at work, 0 where all of it was seen. */
  unseen: number;
  /** Live sessions that are not drawn: without anything in view, and with. */
  folded: { quiet: number; others: number };
}

interface Row extends Lane {
  /** By job: the line that its bar stands on. */
  rows: Map<string, number>;
}

const inView = (from: number, to: number | null, v: View) => from <= v.to && (to ?? v.now) >= v.from;

const MINUTE = 60_000;
/** How long a view of a young Bridge is: it is filled from the left, and then becomes the next. */
const YOUNG = [1, 2, 4, 8, 15, 30, 60, 120, 240].map((minutes) => minutes * MINUTE);
/** Of a young view, what is left free before the first that happened. */
const FREE = 0.03;

/** When the first of what can be in a view happened, with the beginning of what is known. */
export function firstOf(facts: Facts, now: number, span: number): number {
  const { activity } = facts;
  const v = { from: now - span, to: now, now, width: 0, about: '', all: false };
  const starts = [activity.began ?? -Infinity];
  for (const m of activity.messages) if (m.at >= v.from) starts.push(m.at);
  for (const spans of Object.values(activity.work))
    for (const s of spans) if (inView(s.from, s.to, v)) starts.push(s.from);
  for (const run of facts.runs)
    if (run.startedAt !== null && inView(run.startedAt, run.endedAt, v)) starts.push(run.startedAt);
  return starts.reduce((a, b) => Math.min(a, b));
}

/**
 * What is in view of a span that ends at the present. Where less than the span has passed since the first that
 * happened, it stands at the left and the present moves to the right, so that nothing else moves.
 */
export function present(first: number, now: number, span: number): Pick<View, 'from' | 'to'> {
  const length = [...YOUNG.filter((n) => n < span), span].find((n) => now - first < n * (1 - FREE));
  if (length === undefined || !Number.isFinite(first)) return { from: now - span, to: now };
  const from = first - length * FREE;
  return { from, to: from + length };
}

/** What a session has in the view: when something last happened to it, 0 for nothing. */
function lastActivity(facts: Facts, v: View): Map<string, number> {
  const last = new Map<string, number>();
  const saw = (name: string, at: number) => {
    if (at > (last.get(name) ?? 0)) last.set(name, at);
  };
  for (const peer of facts.peers) {
    if (peer.state === 'busy' && v.to >= v.now) saw(peer.name, v.now + 1); // before all others
    for (const s of facts.activity.work[peer.id] ?? [])
      if (inView(s.from, s.to, v)) saw(peer.name, Math.min(s.to ?? v.now, v.now));
  }
  for (const m of facts.activity.messages) {
    if (m.at < v.from || m.at > v.to) continue;
    saw(m.from, m.at);
    for (const way of m.ways) saw(way.name, way.read ?? m.at);
  }
  for (const run of facts.runs)
    if (run.startedAt !== null && inView(run.startedAt, run.endedAt, v)) saw(run.by, run.endedAt ?? v.now);
  for (const q of facts.questions) if (inView(q.askedAt, q.endedAt, v)) saw(q.by, q.endedAt ?? v.now);
  return last;
}

/** The sessions that one deals with in the view. */
function partners(name: string, facts: Facts, v: View): Set<string> {
  const all = new Set([name]);
  for (const m of facts.activity.messages) {
    if (m.at < v.from || m.at > v.to) continue;
    if (m.from === name) for (const way of m.ways) all.add(way.name);
    else if (m.ways.some((way) => way.name === name)) all.add(m.from);
  }
  return all;
}

/** Who has a lane, in the order of the menu, which does not change by what they do. */
function choose(facts: Facts, v: View): { peers: LanePeer[]; folded: Picture['folded'] } {
  let peers = byProject(facts.peers).flatMap((group) => group.peers);
  if (v.about !== '') {
    const among = partners(v.about, facts, v);
    peers = peers.filter((p) => among.has(p.name));
    peers.sort((a, b) => Number(b.name === v.about) - Number(a.name === v.about));
  }
  const last = lastActivity(facts, v);
  if (v.all || peers.length <= FEW) return { peers, folded: { quiet: 0, others: 0 } };
  const active = peers.filter((p) => last.has(p.name) || p.name === v.about);
  const newest = active
    .toSorted((a, b) => (last.get(b.name) ?? Infinity) - (last.get(a.name) ?? Infinity))
    .slice(0, MOST);
  const kept = new Set(newest);
  return {
    peers: peers.filter((p) => kept.has(p)),
    folded: { quiet: peers.length - active.length, others: active.length - newest.length },
  };
}

/** The jobs of a lane, those of its jobs too: at work before ended, then the newest first. */
function jobsOf(name: string, facts: Facts, v: View): Run[] {
  const under = new Set([name]);
  for (let grew = true; grew;) {
    grew = false;
    for (const run of facts.runs) if (under.has(run.by) && !under.has(run.job)) grew = !!under.add(run.job);
  }
  return facts.runs
    .filter((r) => under.has(r.by) && r.startedAt !== null && inView(r.startedAt, r.endedAt, v))
    .sort((a, b) => Number(isEnded(a)) - Number(isEnded(b)) || (b.startedAt ?? 0) - (a.startedAt ?? 0));
}

class Drawing {
  readonly x: (at: number) => number;
  readonly lanes: Row[] = [];
  readonly jobs: JobBar[] = [];
  readonly marks: Mark[] = [];
  readonly #byName = new Map<string, Row>();
  #height = AXIS;

  constructor(
    readonly facts: Facts,
    readonly v: View,
  ) {
    const scale = scaleTime([v.from, v.to], [0, v.width]);
    this.x = (at) => Math.min(v.width, Math.max(0, scale(at)));
  }

  lane(name: string, agent: string, state: Lane['state']): Row {
    const y = this.#height;
    const middle = y + LANE / 2;
    const row: Row = { name, agent, state, y, middle, height: LANE, more: 0, rows: new Map() };
    this.lanes.push(row);
    this.#byName.set(name, row);
    this.#height += LANE;
    return row;
  }

  get height(): number {
    return this.#height;
  }

  /** Bars in as few rows as their words leave room for. */
  placeJobs(row: Row): void {
    const most = this.v.all || this.facts.peers.length <= FEW || this.v.about !== '' ? MOST_JOBS : FEW_JOBS;
    const taken: { from: number; to: number }[][] = [];
    for (const run of jobsOf(row.name, this.facts, this.v)) {
      const bar = this.#bar(run);
      const { from, to } = extent(bar);
      let at = taken.findIndex((bars) => bars.every((b) => b.to + 12 <= from || to + 12 <= b.from));
      if (at < 0) at = taken.length;
      if (at >= most) {
        row.more++;
        continue;
      }
      (taken[at] ??= []).push({ from, to });
      bar.y = row.y + LANE + at * JOB;
      row.rows.set(run.job, bar.y + JOB / 2 - 1);
      this.jobs.push(bar);
      this.#jobMark(run, bar);
    }
    row.height += taken.length * JOB;
    this.#height += taken.length * JOB;
  }

  #bar(run: Run): JobBar {
    const x = this.x(run.startedAt ?? this.v.now);
    const width = Math.max(3, this.x(run.endedAt ?? this.v.now) - x);
    const { percent } = run.progress;
    const step = isEnded(run) ? run.status : run.step === '' ? run.status : oneLine(run.step);
    const words = [
      excerpt(titleOf(run), 36).text,
      percent === null || isEnded(run) ? '' : `${percent} %`,
      excerpt(step, 28).text,
    ]
      .filter((part) => part !== '')
      .join(' · ');
    const place = placeWords(wordsWidth(words), x, width, this.v.width, this.#askedBy(run.job));
    return {
      job: run.job,
      agent: run.agent,
      x,
      y: 0,
      width,
      done: percent === null || isEnded(run) ? null : (width * percent) / 100,
      status: run.status,
      words,
      ...place,
    };
  }

  /** Where the diamonds of a job will stand on its bar. */
  #askedBy(job: string): number[] {
    const { approvals, questions } = this.facts;
    return [
      ...approvals.filter((a) => a.job === job && inView(a.askedAt, answeredAt(a), this.v)),
      ...questions.filter((q) => q.by === job && inView(q.askedAt, q.endedAt, this.v)),
    ].map(({ askedAt }) => this.x(askedAt));
  }

  #jobMark(run: Run, bar: JobBar): void {
    const { now } = this.v;
    const at = run.startedAt ?? now;
    const y = bar.y + JOB / 2 - 1;
    const took = duration((run.endedAt ?? now) - at);
    this.marks.push({
      key: `job ${run.job}`,
      kind: 'job',
      at,
      x: bar.x,
      y,
      points: [[bar.x + bar.width, y]],
      half: JOB / 2 - 2,
      path: '',
      open: !isEnded(run),
      agent: run.agent,
      who: `${run.called}, a job of ${run.by}`,
      what: titleOf(run),
      when: `begun ${clock(at, now)}, ${isEnded(run) ? `took ${took}` : `for ${took}`}`,
      how: bar.words.slice(excerpt(titleOf(run), 36).text.length).replace(/^ · /, ''),
      opens: { place: { page: 'run', job: run.job, tab: '' } },
    });
  }

  /** When it was at work; turns that would touch each other are one bar. */
  work(peer: LanePeer): void {
    const row = this.#byName.get(peer.name);
    if (row === undefined) return;
    const { now } = this.v;
    let bar: { from: number; to: number | null } | undefined;
    const end = () => {
      if (bar === undefined) return;
      const [x, to] = [this.x(bar.from), Math.max(this.x(bar.from) + 2, this.x(bar.to ?? now))];
      this.marks.push({
        key: `work ${peer.id} ${bar.from}`,
        kind: 'work',
        at: bar.from,
        x,
        y: row.middle,
        points: [[to, row.middle]],
        half: 5,
        path: `M${px(x)} ${row.middle - 4}H${px(to)}v8H${px(x)}z`,
        open: bar.to === null,
        agent: peer.agent,
        who: peer.name,
        what: bar.to === null ? 'is at work' : 'was at work',
        when:
          bar.to === null
            ? `since ${clock(bar.from, now)}`
            : `${clock(bar.from, now)} to ${clock(bar.to, now)}`,
        how: duration((bar.to ?? now) - bar.from),
        opens: { place: { page: 'session', name: peer.name } },
      });
    };
    for (const span of this.facts.activity.work[peer.id] ?? []) {
      if (!inView(span.from, span.to, this.v)) continue;
      if (bar !== undefined && bar.to !== null && this.x(span.from) - this.x(bar.to) < 1) bar.to = span.to;
      else {
        end();
        bar = { ...span };
      }
    }
    end();
  }

  messages(): void {
    const groups = new Map<string, ActivityMark>();
    for (const m of this.facts.activity.messages) {
      if (m.at < this.v.from || m.at > this.v.to) continue;
      if (m.kind !== 'decision') {
        this.#message(m);
        continue;
      }
      // One notice for each session, all of one moment.
      const key = `${m.at} ${m.from} ${m.words}`;
      const first = groups.get(key);
      groups.set(key, first === undefined ? m : { ...first, ways: [...first.ways, ...m.ways] });
    }
    for (const m of groups.values()) this.#decision(m);
    this.#wakes();
  }

  #message(m: ActivityMark): void {
    const from = this.#byName.get(m.from);
    const x = this.x(m.at);
    for (const way of m.ways) {
      const to = this.#byName.get(way.name);
      const own = from ?? to;
      if (own === undefined || (this.v.about !== '' && ![m.from, way.name].includes(this.v.about))) continue;
      const lost = way.stage === 'expired' || way.stage === 'refused';
      const open = way.read === null && !lost;
      const endX = Math.max(x, this.x(way.read ?? (lost ? m.at : this.v.now)));
      const [y1, y2] = [own.middle, (to ?? own).middle];
      // With only one of the two in the picture there is no way to draw, but a message.
      const alone = from === undefined || to === undefined;
      this.marks.push({
        ...this.#said(m, [way]),
        key: `message ${m.id} ${way.name}`,
        kind: 'message',
        x,
        y: y1,
        points: alone ? [] : curve(x, y1, endX, y2),
        path: alone ? `M${px(x - 1.5)} ${y1}a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0` : arc(x, y1, endX, y2),
        open,
      });
    }
  }

  #decision(m: ActivityMark): void {
    const told = m.ways.flatMap((way) => this.#byName.get(way.name) ?? []);
    const author = this.#byName.get(m.from);
    const all = author === undefined ? told : [author, ...told];
    if (all.length === 0 || (this.v.about !== '' && !all.some((l) => l.name === this.v.about))) return;
    const ys = [...new Set(all.map((l) => l.middle))].sort((a, b) => a - b);
    const x = this.x(m.at);
    const head = (author ?? all[0])?.middle ?? 0;
    this.marks.push({
      ...this.#said(m, m.ways),
      key: `decision ${m.id}`,
      kind: 'decision',
      x,
      y: head,
      points: ys.map((y) => [x, y]),
      path:
        `M${px(x)} ${(ys[0] ?? 0) - 9}V${(ys.at(-1) ?? 0) + 4}M${px(x)} ${head - 9}h7l-2 3 2 3h-7z` +
        ys.map((y) => `M${px(x - 2)} ${y}h4`).join(''),
      open: false,
    });
  }

  /** Who said what to whom, when and how far it came. */
  #said(m: ActivityMark, ways: Way[]): Omit<Mark, 'key' | 'kind' | 'x' | 'y' | 'points' | 'path' | 'open'> {
    const names = ways.map((way) => way.name);
    const whom = names.length <= 3 ? names.join(', ') : `${names.length} sessions`;
    return {
      at: m.at,
      half: 0,
      agent: m.agent,
      who: m.kind === 'decision' ? `${m.from} decided, told ${whom}` : `${m.from} to ${whom}`,
      what: excerpt(oneLine(m.words), 120).text,
      when: clock(m.at, this.v.now),
      how: howFar(ways, this.v.now),
      opens: { message: m.id },
    };
  }

  #wakes(): void {
    const seen = new Set<string>();
    for (const m of this.facts.activity.messages) {
      for (const way of m.ways) {
        const row = this.#byName.get(way.name);
        const { woken } = way;
        if (row === undefined || woken === null || woken < this.v.from || woken > this.v.to) continue;
        const key = `wake ${way.name} ${woken}`;
        if (seen.has(key)) continue;
        seen.add(key);
        const x = this.x(woken);
        this.marks.push({
          ...this.#said(m, [way]),
          key,
          kind: 'wake',
          at: woken,
          x,
          y: row.middle - 8,
          points: [],
          path: `M${px(x)} ${row.middle - 11}v7`,
          open: false,
          agent: row.agent,
          who: `${way.name} was woken by ${m.from}`,
          when: clock(woken, this.v.now),
        });
      }
    }
  }

  approvals(): void {
    for (const a of this.facts.approvals) {
      const until = answeredAt(a);
      // A prompt of an interactive session has no job.
      const name = a.job === '' ? a.session : a.job;
      this.#asked(
        this.lanes.find((l) => l.rows.has(a.job)) ?? this.#byName.get(name === a.job ? a.by : name),
        a.job,
        {
          key: `approval ${a.id}`,
          kind: 'approval',
          at: a.askedAt,
          until,
          open: a.state === 'asked',
          who: `${name} asks`,
          what: `${askWords(a)}: ${excerpt(oneLine(a.detail), 100).text}`,
          how: approvalFate(a),
          opens:
            a.state === 'asked'
              ? { place: { page: 'needs' } }
              : { place: a.job === '' ? { page: 'session', name } : { page: 'run', job: a.job, tab: '' } },
        },
      );
    }
  }

  questions(): void {
    for (const q of this.facts.questions) {
      const receipt = q.answer?.receipt ?? '';
      this.#asked(this.lanes.find((l) => l.rows.has(q.by)) ?? this.#byName.get(q.by), q.by, {
        key: `question ${q.id}`,
        kind: 'question',
        at: q.askedAt,
        until: q.endedAt,
        open: q.state === 'open',
        who: `${q.by} asks you`,
        what: excerpt(oneLine(q.title), 120).text,
        how: questionFate(q),
        opens:
          q.state === 'open'
            ? { place: { page: 'needs' } }
            : receipt !== ''
              ? { message: receipt }
              : { place: { page: 'session', name: q.by } },
      });
    }
  }

  /** A diamond where somebody asked, and a line under all else to the answer; a question's has a hole. */
  #asked(lane: Row | undefined, job: string, asked: Asked): void {
    const { now } = this.v;
    const { until, ...mark } = asked;
    if (lane === undefined || !inView(mark.at, until, this.v)) return;
    const y = lane.rows.get(job) ?? lane.middle;
    const [x, end] = [this.x(mark.at), this.x(until ?? now)];
    const hole = mark.kind === 'question' ? `M${px(x)} ${y - 2.5}l-2.5 2.5 2.5 2.5 2.5-2.5z` : '';
    this.marks.push({
      ...mark,
      x,
      y,
      points: end - x > 6 ? [[end, y]] : [],
      half: 0,
      path: `M${px(x)} ${y - 6}l6 6-6 6-6-6z${hole}` + (end - x > 6 ? `M${px(x)} ${y + 6}H${px(end)}` : ''),
      agent: '',
      when: clock(mark.at, now),
    });
  }
}

type Asked = Pick<Mark, 'key' | 'kind' | 'at' | 'open' | 'who' | 'what' | 'how' | 'opens'> & {
  until: number | null;
};

const px = (n: number) => n.toFixed(1);

const wordsWidth = (words: string) => words.length * 6.3;

/** When a question was over, null for one that is open. */
const answeredAt = (a: Approval) => a.answeredAt ?? (a.state === 'asked' ? null : a.expiresAt);

/** What a diamond and the air beside it take to each side. */
const DIAMOND = 9;

/**
 * Words stand in their bar, else after it, else before it, never on a diamond of it where there is
 * room elsewhere, and never beyond the picture.
 */
function placeWords(
  words: number,
  x: number,
  width: number,
  all: number,
  diamonds: number[],
): Pick<JobBar, 'wordsX' | 'anchor'> {
  const within = [x + 5, ...diamonds.map((at) => at + DIAMOND).sort((a, b) => a - b)].find(
    (start) =>
      start >= x + 5 &&
      start + words <= x + width - 3 &&
      diamonds.every((at) => at + DIAMOND <= start || start + words <= at - DIAMOND),
  );
  if (within !== undefined) return { wordsX: within, anchor: 'start' };
  const after = Math.max(x + width + 5, ...diamonds.map((at) => at + DIAMOND));
  if (after + words <= all) return { wordsX: after, anchor: 'start' };
  const before = Math.min(x - 5, ...diamonds.map((at) => at - DIAMOND));
  if (words <= before) return { wordsX: before, anchor: 'end' };
  return { wordsX: Math.max(2, Math.min(x + 5, all - words)), anchor: 'start' };
}

/** What a bar takes of its row, with its words. */
function extent(bar: JobBar): { from: number; to: number } {
  const words = wordsWidth(bar.words);
  const start = bar.anchor === 'end' ? bar.wordsX - words : bar.wordsX;
  return { from: Math.min(bar.x, start), to: Math.max(bar.x + bar.width, start + words) };
}

/** A line that leaves its lane to the right and comes to the other from the left. */
function arc(x1: number, y1: number, x2: number, y2: number): string {
  const bend = Math.max(6, Math.min(40, (x2 - x1) / 2));
  return `M${px(x1)} ${y1}C${px(x1 + bend)} ${y1} ${px(x2 - bend)} ${y2} ${px(x2)} ${y2}`;
}

/** Points along it, to be pointed at. */
function curve(x1: number, y1: number, x2: number, y2: number): [number, number][] {
  const bend = Math.max(6, Math.min(40, (x2 - x1) / 2));
  return [0.2, 0.4, 0.6, 0.8, 1].map((t) => {
    const [a, b, c, d] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t ** 2 * (1 - t), t ** 3];
    return [a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2, (a + b) * y1 + (c + d) * y2];
  });
}

const STAGE_WORDS: Partial<Record<Way['stage'], string>> = {
  handed: 'handed over, not read yet',
  woken: 'woken, not read yet',
  expired: 'expired unread',
  refused: 'refused by the other PC',
  'at-hub': 'at the team’s hub, not on the other PC yet',
  arrived: 'arrived on the other PC, not read yet',
};

/** How far a message came, in a few words. */
export function howFar(ways: Way[], now: number): string {
  const [only] = ways;
  if (only === undefined) return 'nobody had it';
  if (ways.length > 1) {
    const read = ways.filter((way) => way.read !== null).length;
    return read === ways.length ? `read by all ${read}` : `read by ${read} of ${ways.length}`;
  }
  if (only.read !== null) {
    return `${only.stage === 'answered' ? 'answered, ' : ''}read ${clock(only.read, now)}`;
  }
  return STAGE_WORDS[only.stage] ?? 'waits to be read';
}

function approvalFate(a: Approval): string {
  if (a.state === 'asked') return 'nobody has answered yet';
  if (a.decision === '') return a.state;
  return `${a.decision === 'allow' ? 'allowed' : 'denied'} by ${answererWords(a.answeredBy)}`;
}

function questionFate(q: Question): string {
  switch (q.state) {
    case 'open':
      return q.blocking ? 'waits for your answer' : 'not answered yet';
    case 'answered':
      return `answered: ${excerpt(oneLine(q.answer?.words ?? ''), 80).text}`;
    case 'cancelled':
      return 'taken back';
    case 'superseded':
      return 'asked anew';
  }
}

/** The clock along a view, with seconds where its marks are nearer than a minute. */
function ticksOf(v: View, x: (at: number) => number): Picture['ticks'] {
  const all = scaleTime([v.from, v.to], [0, v.width]).ticks(Math.max(2, Math.floor(v.width / 90)));
  const seconds = all.some((at) => at.getSeconds() !== 0);
  const words = (at: Date) =>
    clock(at.getTime(), v.now) + (seconds ? `:${String(at.getSeconds()).padStart(2, '0')}` : '');
  const edge = seconds ? 26 : 16;
  return all
    .map((at) => ({ x: x(at.getTime()), words: words(at) }))
    .filter((tick) => tick.x > edge && tick.x < v.width - edge);
}

export function draw(facts: Facts, v: View): Picture {
  const d = new Drawing(facts, v);
  const { peers, folded } = choose(facts, v);
  const owner = facts.activity.messages.some(
    (m) =>
      m.at >= v.from &&
      m.at <= v.to &&
      m.kind === 'owner' &&
      (v.about === '' || m.ways.some((way) => way.name === v.about)),
  );
  if (owner) d.lane(OWNER, 'owner', 'owner');
  for (const peer of peers) d.placeJobs(d.lane(peer.name, peer.agent, peer.state));
  if (v.about === '') {
    const live = new Set([...facts.peers.map((p) => p.name), ...facts.runs.map((r) => r.job)]);
    const gone = facts.runs.filter((r) => !isEnded(r) && r.startedAt !== null && !live.has(r.by));
    for (const name of new Set(gone.map((r) => r.by))) d.placeJobs(d.lane(name, '', 'away'));
  }
  for (const peer of peers) d.work(peer);
  d.messages();
  d.approvals();
  d.questions();
  d.marks.sort((a, b) => a.at - b.at || a.y - b.y);
  const { began } = facts.activity;
  return {
    height: d.height + 4,
    lanes: d.lanes,
    jobs: d.jobs,
    marks: d.marks,
    ticks: ticksOf(v, d.x),
    present: v.now <= v.to ? d.x(v.now) : null,
    unseen: began === null ? v.width : d.x(began) <= v.width * FREE * 1.5 ? 0 : d.x(began),
    folded,
  };
}

/** The first item of the least value. */
function least<T>(items: T[], value: (item: T) => number): T | undefined {
  let found: T | undefined;
  let lowest = Infinity;
  for (const item of items) {
    const n = value(item);
    if (n < lowest) [found, lowest] = [item, n];
  }
  return found;
}

const squared = (x: number, y: number) => x * x + y * y;

/** How far a point is from a mark; Infinity beyond its reach. */
function distance(mark: Mark, x: number, y: number): number {
  if (mark.half > 0) {
    const end = mark.points[0]?.[0] ?? mark.x;
    const within = x >= mark.x - 2 && x <= end + 2 && Math.abs(y - mark.y) <= mark.half;
    return within ? NEAR - 1 : Infinity; // whatever stands on a bar comes first
  }
  // Asked of thousands of marks for each move of a pointer: no lists are made for that.
  let least = squared(mark.x - x, mark.y - y);
  for (const [px, py] of mark.points) least = Math.min(least, squared(px - x, py - y));
  return Math.sqrt(least);
}

/** The mark that is pointed at, if any. */
export function markAt(marks: Mark[], x: number, y: number): Mark | undefined {
  const found = least(marks, (mark) => distance(mark, x, y));
  return found !== undefined && distance(found, x, y) <= NEAR ? found : undefined;
}

/** Where a key leads from a mark; undefined where nothing is. */
export function step(marks: Mark[], from: Mark | undefined, key: string): Mark | undefined {
  const at = from === undefined ? -1 : marks.findIndex((m) => m.key === from.key);
  const here = marks[at];
  switch (key) {
    case 'Home':
      return marks[0];
    case 'End':
      return marks.at(-1);
    case 'ArrowRight':
      return here === undefined ? marks.at(-1) : (marks[at + 1] ?? here);
    case 'ArrowLeft':
      return here === undefined ? marks.at(-1) : (marks[at - 1] ?? here);
    case 'ArrowUp':
    case 'ArrowDown': {
      if (here === undefined) return marks.at(-1);
      const way = key === 'ArrowUp' ? -1 : 1;
      const beyond = marks.filter((m) => (m.y - here.y) * way > 1);
      const next = least(beyond, (m) => (m.y - here.y) * way);
      const row = beyond.filter((m) => m.y === next?.y);
      return least(row, (m) => Math.abs(m.x - here.x)) ?? here;
    }
    default:
      return undefined;
  }
}

/** The words of a mark, for a screen reader. */
export const sentence = (mark: Mark) =>
  [mark.who, mark.what, mark.when, mark.how].filter((part) => part !== '').join(', ');

/** What is folded away, in words; '' for nobody. */
export function foldedWords({ quiet, others }: Picture['folded']): string {
  const parts = [];
  if (others > 0) parts.push(`${count(others, 'more session')} with something in view`);
  if (quiet > 0) parts.push(`${count(quiet, 'quiet session')}`);
  return parts.join(', ');
}
