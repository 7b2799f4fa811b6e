import { afterEach, describe, expect, it, vi } from 'vitest';
import { api } from '../../lib/api';
import { keptDraft } from '../../lib/drafts';
import { Review } from './review.svelte';

afterEach(() => {
  vi.restoreAllMocks();
  localStorage.clear();
});

const at = (line: number, side: 'old' | 'new' = 'new') => ({ path: 'main.go', line, side });

describe('JOB-18 a review', () => {
  it('is there after a reload, with the comment that is being written', () => {
    const review = new Review('job-1');
    review.write(at(4));
    review.draft = 'Why this one?';
    review.keep();
    review.write(at(8));
    review.reach(6);
    review.draft = 'Say';
    const again = new Review('job-1');
    expect(again.comments).toEqual([{ ...at(4), body: 'Why this one?', from: null }]);
    expect([again.at, again.from, again.draft]).toEqual([at(8), 6, 'Say']);
    expect(new Review('job-2').comments).toEqual([]);
  });

  it('keeps the words of a line when another one is begun', () => {
    const review = new Review('job-1');
    review.write(at(4));
    review.draft = 'Why this one?';
    review.write(at(9));
    expect(review.comments).toEqual([{ ...at(4), body: 'Why this one?', from: null }]);
    expect([review.at, review.draft]).toEqual([at(9), '']);
    review.write(at(4));
    expect(review.draft).toBe('Why this one?');
  });

  it('does not begin a line anew that is being written', () => {
    const review = new Review('job-1');
    review.write(at(4));
    review.draft = 'Why';
    review.write(at(4));
    expect(review.draft).toBe('Why');
  });

  it('leaves an emptied comment as it was, and can take up one that was left', () => {
    const review = new Review('job-1');
    review.write(at(4));
    review.draft = 'Why?';
    expect(review.isUnsaid).toBe(true);
    review.keep();
    review.write(at(4));
    expect(review.isUnsaid).toBe(false);
    review.draft = ' ';
    expect(review.isUnsaid).toBe(false);
    review.leave();
    expect([review.left, review.comments.length]).toEqual([null, 1]);
    review.write(at(4));
    review.reach(2);
    review.draft = 'Why not?';
    review.leave();
    expect(review.comments[0]?.body).toBe('Why?');
    review.takeUp();
    expect([review.at, review.from, review.draft, review.left]).toEqual([at(4), 2, 'Why not?', null]);
  });

  it('is dropped once it is sent, but for what was added meanwhile', async () => {
    const review = new Review('job-1');
    review.write(at(4));
    review.draft = 'Why?';
    review.keep();
    let answer: () => void = () => undefined;
    vi.spyOn(api, 'commentRun').mockImplementation(
      () =>
        new Promise((told) => {
          answer = () => told({ job: 'job-1', status: 'queued', delivery: 'queued' });
        }),
    );
    const sending = review.send();
    review.write(at(9));
    review.draft = 'And this?';
    review.keep();
    answer();
    await sending;
    expect(review.comments.map((c) => c.body)).toEqual(['And this?']);
    expect(new Review('job-1').comments).toEqual(review.comments);
    const last = review.send();
    answer();
    await last;
    expect(keptDraft('review:job-1')).toBeUndefined();
  });

  it('stays after a send that failed', async () => {
    const review = new Review('job-1');
    review.write(at(4));
    review.draft = 'Why?';
    review.keep();
    vi.spyOn(api, 'commentRun').mockRejectedValue(new Error('Bridge does not answer.'));
    await review.send();
    expect(new Review('job-1').comments).toEqual(review.comments);
    expect(review.comments).toHaveLength(1);
  });

  it.each([
    ['nothing', null],
    ['another form', { comments: 'x', at: 3, from: 'y', draft: 1 }],
    ['damaged comments', { comments: [{ path: 1 }, null, { ...at(3), body: 'x' }] }],
    ['words without a place', { comments: [], draft: 'Why?', at: { path: 'main.go' } }],
  ])('is empty where %s was kept', (_, value) => {
    localStorage.setItem('bridge.draft.review:job-1', JSON.stringify({ at: Date.now(), value }));
    const review = new Review('job-1');
    expect([review.comments, review.at, review.from, review.draft]).toEqual([[], null, null, '']);
  });

  it('PGE-11 has its comments in the order of files and lines', () => {
    const review = new Review('job-1');
    for (const where of [
      at(9),
      { ...at(2), path: 'b.go' },
      at(4),
      at(4, 'old'),
      { ...at(30), path: 'a.go' },
    ]) {
      review.write(where);
      review.draft = 'x';
      review.keep();
    }
    const places = (r: Review) => r.comments.map((c) => `${c.path} ${c.side} ${c.line}`);
    const order = ['a.go new 30', 'b.go new 2', 'main.go old 4', 'main.go new 4', 'main.go new 9'];
    expect(places(review)).toEqual(order);
    expect(places(new Review('job-1'))).toEqual(order);
  });

  it('PGE-11 loses a comment that is removed, and can take it up again', () => {
    const review = new Review('job-1');
    review.write(at(4));
    review.draft = 'Why?';
    review.keep();
    review.remove(at(9));
    expect(review.comments.length).toBe(1);
    review.remove(at(4));
    expect([review.comments, new Review('job-1').comments]).toEqual([[], []]);
    review.takeUp();
    expect([review.at, review.draft]).toEqual([at(4), 'Why?']);
  });

  it('PGE-11 says whether it was sent', async () => {
    const review = new Review('job-1');
    expect(await review.send()).toBe(false);
    review.write(at(4));
    review.draft = 'Why?';
    review.keep();
    const call = vi.spyOn(api, 'commentRun').mockRejectedValueOnce(new Error('no'));
    expect([await review.send(), review.comments.length]).toEqual([false, 1]);
    call.mockResolvedValueOnce({ job: 'job-1', status: 'queued', delivery: 'queued' });
    expect([await review.send(), review.comments.length]).toEqual([true, 0]);
  });
});
