import { describe, expect, it } from 'vitest';
import { isWithin, projectName, shortPath } from './path';

describe('projectName', () => {
  it.each([
    ['/home/anna/web', 'web'],
    ['/home/anna/web/', 'web'],
    ['C:\\work\\api', 'api'],
    ['/', '/'],
  ])('%s', (folder, want) => {
    expect(projectName(folder)).toBe(want);
  });
});

describe('isWithin', () => {
  it.each([
    ['/w', '/w', true],
    ['/w', '/w/api', true],
    ['/w/', '/w/api', true],
    ['/', '/w', true],
    ['/w', '/web', false],
    ['/w/api', '/w', false],
    ['C:\\w', 'C:\\w\\api', true],
    ['C:\\', 'C:\\w', true],
  ])('%s holds %s: %s', (folder, path, want) => {
    expect(isWithin(folder, path)).toBe(want);
  });
});

describe('shortPath', () => {
  it.each([
    ['/home/anna/web', 30, '/home/anna/web'],
    ['/home/anna/work/customers/northwind/api-server', 34, '/home/…/northwind/api-server'],
    ['/home/anna/work/customers/northwind/api-server', 10, '/home/…/api-server'],
    ['C:\\Users\\Anna\\Documents\\projects\\api', 24, 'C:\\…\\projects\\api'],
    ['/averyveryverylongsinglefolder', 10, '/averyveryverylongsinglefolder'],
  ])('%s in %i', (folder, max, want) => {
    expect(shortPath(folder, max)).toBe(want);
  });
});
