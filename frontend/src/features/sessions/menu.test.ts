import { describe, expect, it } from 'vitest';
import type { Peer } from '../../lib/api';
import { inMenu } from './sessions';

const peer = (name: string, state: Peer['state'], unread = 0) =>
  ({ name, state, unread, children: [] }) as unknown as Peer;

describe('PGE-07 the sessions of the menu', () => {
  const peers = [
    peer('a-idle', 'idle'),
    peer('b-busy', 'busy'),
    peer('c-waits', 'idle'),
    peer('d-unread', 'idle', 2),
    peer('e-open', 'idle'),
  ];
  const menu = (crowd: boolean) => {
    const { shown, idle } = inMenu(peers, { crowd, waits: (name) => name === 'c-waits', open: 'e-open' });
    return [shown.map((p) => p.name), idle.map((p) => p.name)];
  };

  it('has who waits and who works first, and folds the idle ones of a crowd', () => {
    expect(menu(true)).toEqual([['c-waits', 'b-busy', 'd-unread', 'e-open'], ['a-idle']]);
  });

  it('folds nobody where there are few', () => {
    expect(menu(false)).toEqual([['c-waits', 'b-busy', 'a-idle', 'd-unread', 'e-open'], []]);
  });
});
