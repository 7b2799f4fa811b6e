import { describe, expect, it } from 'vitest';
import { Loaded } from './loaded.svelte';

/** Questions whose answers the test gives, in any order. */
function questions() {
  const open: { answer: (value: string) => void; fail: (error: Error) => void }[] = [];
  const ask = () =>
    new Promise<string>((answer, fail) => {
      open.push({ answer, fail });
    });
  return { open, ask };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

describe('load', () => {
  it('shows the answer to the newest question only', async () => {
    const { open, ask } = questions();
    const loaded = new Loaded<string>();
    void loaded.load(ask);
    void loaded.load(ask);
    open[0]?.answer('old');
    await settled();
    expect(loaded.value).toBeNull();
    open[1]?.answer('new');
    await settled();
    expect(loaded.value).toBe('new');
  });
});

describe('refresh', () => {
  it('shows an answer, however fast changes come', async () => {
    const { open, ask } = questions();
    const loaded = new Loaded<string>();
    for (let change = 0; change < 5; change++) void loaded.refresh(ask);
    expect(open.length).toBe(1);
    open[0]?.answer('first');
    await settled();
    expect(loaded.value).toBe('first');
    // What changed meanwhile is looked at once more, and then no more.
    expect(open.length).toBe(2);
    open[1]?.answer('second');
    await settled();
    expect(loaded.value).toBe('second');
    expect(open.length).toBe(2);
  });

  it('does not let another question wait, and forgets the one before', async () => {
    const { open, ask } = questions();
    const loaded = new Loaded<string>();
    void loaded.refresh(ask, 'a');
    void loaded.refresh(ask, 'a');
    void loaded.refresh(ask, 'b');
    expect(open.length).toBe(2);
    open[1]?.answer('b');
    await settled();
    open[0]?.answer('a');
    await settled();
    expect(loaded.value).toBe('b');
    expect(open.length).toBe(2);
  });

  it('goes on after a failure', async () => {
    const { open, ask } = questions();
    const loaded = new Loaded<string>();
    void loaded.refresh(ask);
    open[0]?.fail(new Error('away'));
    await settled();
    expect(loaded.problem).toBe('away');
    void loaded.refresh(ask);
    open[1]?.answer('back');
    await settled();
    expect(loaded.value).toBe('back');
    expect(loaded.problem).toBe('');
  });
});
