import { expect, test } from '@jest/globals';
import { loadTakeScript, readTakeScript } from '../../../../src/storage/redis/take-script.js';

/**
 * Redis takes no longer argument from a client that has not logged in: it closes the connection without a word of what
 * it misses.
 */
const UNAUTHENTICATED_BULK_LENGTH = 16_384;

/** Texts in quotes, names, numbers, and what else there is, a character each. */
function tokensOf(lua: string): string[] {
  return lua.replaceAll(/^\s*--.*$/gm, '').match(/'[^']*'|[A-Za-z_]\w*|\d\w*|[^\s\w]/g) ?? [];
}

function isName(token: string): boolean {
  return /^[A-Za-z_]/.test(token);
}

test('the script is short enough for a Redis that wants a password first, and has no comments', () => {
  const { text } = loadTakeScript();
  expect(Buffer.byteLength(text)).toBeLessThan(UNAUTHENTICATED_BULK_LENGTH);
  expect(text).not.toMatch(/^\s*--|^\s|\n\n/m);
  expect(text).toMatch(/^local /);
});

test('what is sent is the script, but for its own names, which stay as many as they are', () => {
  const written = tokensOf(readTakeScript());
  const sent = tokensOf(loadTakeScript().text);
  expect(sent.map((token) => (isName(token) ? 'name' : token))).toEqual(
    written.map((token) => (isName(token) ? 'name' : token)),
  );
  const sentAs = new Map<string, Set<string>>();
  written.forEach((name, i) => {
    if (isName(name)) sentAs.set(name, (sentAs.get(name) ?? new Set()).add(sent[i] as string));
  });
  expect([...sentAs].filter(([, names]) => names.size > 1)).toEqual([]);
  expect(new Set([...sentAs.values()].flatMap((names) => [...names])).size).toBe(sentAs.size);
  // Names that Lua and Redis give, and a field that Redis reads.
  const library = written.filter((_, i) => /^(redis|string|math|table)$/.test(written[i - 2] ?? ''));
  expect(library).toEqual(expect.arrayContaining(['call', 'pcall', 'byte', 'match', 'floor', 'insert']));
  for (const name of [
    ...library,
    'local',
    'function',
    'return',
    'elseif',
    'ipairs',
    'unpack',
    'err',
    'ARGV',
  ]) {
    expect([name, ...(sentAs.get(name) ?? [])]).toEqual([name, name]);
  }
  expect([...(sentAs.get('takeAlone') ?? [])].join()).toMatch(/^\w{1,2}$/);
});
