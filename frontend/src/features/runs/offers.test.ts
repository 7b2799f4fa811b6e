import { describe, expect, it } from 'vitest';
import type { AgentModels, AgentUsage } from '../../lib/api';
import { effortChoices, inOrder, isNear, modelChoices, resetWords } from './offers';

const NOW = new Date(2026, 10, 21, 14, 0).getTime();
const HOUR = 3_600_000;
const limit = (usedPercent: number, resetsAt: number | null) => ({ name: '5 h', usedPercent, resetsAt });

describe('JOB-21 what the agents tell of their limits', () => {
  it('says when a limit is reset, and that one was since', () => {
    expect(resetWords(limit(5, NOW + HOUR), NOW)).toBe('resets 15:00');
    expect(resetWords(limit(5, NOW + 24 * HOUR), NOW)).toBe('resets 22 Nov 14:00');
    expect(resetWords(limit(5, NOW), NOW)).toBe('was reset 14:00');
    expect(resetWords(limit(5, null), NOW)).toBe('');
  });

  it('warns from 90 percent on, until it is reset', () => {
    expect(isNear(limit(89.9, null), NOW)).toBe(false);
    expect(isNear(limit(90, null), NOW)).toBe(true);
    expect(isNear(limit(90, NOW), NOW)).toBe(false);
  });

  it('puts those that tell something first', () => {
    const usage = (agent: string, limits: AgentUsage['limits']) => ({
      agent,
      asOf: 1,
      plan: '',
      limits,
      note: '',
    });
    const told = [usage('claude', []), usage('opencode', [limit(1, null)]), usage('codex', [limit(1, null)])];
    expect(inOrder(told).map((t) => t.agent)).toEqual(['codex', 'opencode', 'claude']);
  });
});

describe('JOB-21 the models to choose from', () => {
  const model = (id: string, over: Partial<AgentModels['models'][number]> = {}) => ({
    id,
    name: '',
    efforts: [],
    default: false,
    ...over,
  });
  const told: AgentModels[] = [
    {
      agent: 'codex',
      asOf: 1,
      note: '',
      models: [
        model('big', { name: 'Big', efforts: ['low', 'high'], default: true }),
        model('small', { name: 'small', efforts: ['low'] }),
        model('plain'),
      ],
    },
  ];

  it('names each by its id', () => {
    expect(modelChoices(told)).toEqual([
      { id: 'big', about: 'Big, its own choice' },
      { id: 'small', about: '' },
      { id: 'plain', about: '' },
    ]);
    expect(modelChoices([])).toEqual([]);
  });

  it.each([
    ['small', ['low']],
    ['plain', []],
    ['', ['low', 'high']],
    ['of tomorrow', ['low', 'high']],
  ])('of %j it offers the efforts %j', (id, efforts) => expect(effortChoices(told, id)).toEqual(efforts));
});
