import { describe, expect, it } from 'vitest';
import type { Need, NeedSort } from '../../lib/api';
import { Announcer, MOST, WITHIN } from './notices';

function need(id: string, sort: NeedSort = 'approval'): Need {
  return {
    id,
    sort,
    title: 'secret words',
    detail: 'secret words',
    since: 1,
    until: null,
    place: '',
    link: '',
    urgency: 'now',
    by: '',
    news: false,
  };
}

const titles = (announcer: Announcer, open: Need[], allowed = true, watched = false, now = 0) =>
  announcer.due(open, allowed, watched, now).map(({ title }) => title);

describe('PGE-14 browser notices', () => {
  it('announces a need once, one notice a sort, without words of agents', () => {
    const a = new Announcer();
    expect(titles(a, [need('a')])).toEqual([]);
    const open = [need('a'), need('b'), need('c'), need('q', 'question')];
    const due = a.due(open, true, false, 0);
    expect(due.map(({ sort }) => sort)).toEqual(['approval', 'question']);
    expect(JSON.stringify(due)).not.toContain('secret');
    expect(titles(a, open)).toEqual([]);
  });

  it('announces a need that went away and came back', () => {
    const a = new Announcer();
    titles(a, []);
    expect(titles(a, [need('a')])).toHaveLength(1);
    expect(titles(a, [])).toEqual([]);
    expect(titles(a, [need('a')])).toHaveLength(1);
  });

  it('is silent while the owner looks at the page, also later', () => {
    const a = new Announcer();
    titles(a, []);
    expect(titles(a, [need('a')], true, true)).toEqual([]);
    expect(titles(a, [need('a')])).toEqual([]);
  });

  it('announces after the quiet hours what is still open', () => {
    const a = new Announcer();
    titles(a, []);
    expect(titles(a, [need('a'), need('gone')], false)).toEqual([]);
    expect(titles(a, [need('a')])).toHaveLength(1);
  });

  it('has no notice for a lost connection to the broker', () => {
    const a = new Announcer();
    titles(a, []);
    expect(titles(a, [need('offline', 'offline')])).toEqual([]);
  });

  it('shows a limited number of notices in ten minutes', () => {
    const a = new Announcer();
    titles(a, []);
    let shown = 0;
    for (let i = 0; i < MOST + 3; i++) shown += titles(a, [need(`n${i}`)], true, false, i).length;
    expect(shown).toBe(MOST);
    expect(titles(a, [need('later')], true, false, WITHIN)).toHaveLength(1);
  });
});
