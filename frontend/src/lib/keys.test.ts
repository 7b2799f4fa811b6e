import { expect, it } from 'vitest';
import { CHORD, Keys, SHEET } from './keys';

it('goes by g and a second key, in time only', () => {
  const keys = new Keys();
  expect(keys.press('g', 0)).toBeNull();
  expect(keys.press('d', CHORD)).toEqual({ do: 'go', to: 'decisions' });
  expect(keys.press('g', 0)).toBeNull();
  expect(keys.press('o', CHORD + 1)).toBeNull();
  expect(keys.press('o', 0)).toBeNull();
});

it('lets another key end a chord and still mean itself', () => {
  const keys = new Keys();
  keys.press('g', 0);
  expect(keys.press('j', 1)).toEqual({ do: 'next' });
  expect(keys.press('o', 2)).toBeNull();
});

it('does what its sheet of keys says', () => {
  for (const { keys: sequence } of SHEET) {
    if (sequence.includes('Enter') || sequence.includes('Ctrl')) continue; // not of these keys
    const keys = new Keys();
    const presses = sequence[0] === 'g' ? [sequence] : sequence.map((key) => [key]);
    for (const chord of presses) {
      const last = chord.map((key) => keys.press(key === 'Esc' ? 'Escape' : key, 0)).at(-1);
      expect(last, chord.join(' ')).not.toBeNull();
    }
  }
});
