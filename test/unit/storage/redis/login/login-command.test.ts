import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { LoginCommand } from '../../../../../src/storage/redis/connection/login/login-command.js';

let printed: () => string | Promise<string>;
let runs: number;
let told: string[];
let command: LoginCommand;

beforeEach(() => {
  jest.useFakeTimers({ now: Date.parse('2030-01-31T12:00:00Z') });
  runs = 0;
  told = [];
  printed = () => `password${runs}`;
});
afterEach(() => {
  command.close();
  jest.useRealTimers();
});

function open(refreshMs = 600_000): LoginCommand {
  command = new LoginCommand({
    variable: 'REDIS_AUTH_COMMAND',
    command: ['login'],
    refreshMs,
    run: async () => {
      runs++;
      return printed();
    },
  });
  command.follow({
    renewed: ({ password }) => told.push(`renewed ${password}`),
    failed: (sentence) => {
      if (sentence !== undefined) told.push(sentence);
    },
  });
  return command;
}

const password = async (refused = false) => (await command.login(refused)).password;

test('concurrent callers share a run, and the next connection gets a new login', async () => {
  open();
  expect(await Promise.all([password(), password(), password()])).toEqual(Array(3).fill('password1'));
  await jest.advanceTimersByTimeAsync(60_000);
  expect(await password()).toBe('password2');
  expect(told).toEqual(['renewed password1', 'renewed password2']);
});

test('the command runs again before the login expires', async () => {
  open(10_000);
  await password();
  await jest.advanceTimersByTimeAsync(9999);
  expect(told).toEqual(['renewed password1']);
  await jest.advanceTimersByTimeAsync(1);
  expect(told).toEqual(['renewed password1', 'renewed password2']);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(told.slice(2)).toEqual(['renewed password3']);
});

test.each([
  ['a fifth of its lifetime before it expires', 100, 80],
  ['a minute before it expires', 3000, 2940],
  ['after REDIS_AUTH_REFRESH if that is sooner', 10_000, 3600],
  ['at most once per second', 0.1, 1],
])('a login that expires is renewed %s', async (_name, lifeS, afterS) => {
  printed = () => JSON.stringify({ password: `p${runs}`, expiresAt: Date.now() / 1000 + lifeS });
  open(3_600_000);
  await password();
  await jest.advanceTimersByTimeAsync(afterS * 1000 - 1);
  expect(runs).toBe(1);
  await jest.advanceTimersByTimeAsync(1);
  expect(told).toEqual(['renewed p1', 'renewed p2']);
});

test('the first refusal runs the command at once, and later refusals after growing pauses', async () => {
  open();
  await password();
  expect(await password(true)).toBe('password2');
  for (let i = 0; i < 240; i++) {
    await jest.advanceTimersByTimeAsync(500);
    await password(true);
  }
  // After 1, 2, 4, 8, 16, 30, 30 … seconds.
  expect(runs).toBeGreaterThanOrEqual(7);
  expect(runs).toBeLessThanOrEqual(9);
  // Within a pause, the last login is returned.
  expect(await password(true)).toBe(`password${runs}`);
});

test('while Redis is unavailable, not every attempt runs the command, but a later loss does', async () => {
  open();
  for (let i = 0; i < 120; i++) {
    await password();
    await jest.advanceTimersByTimeAsync(500);
  }
  expect(runs).toBeLessThanOrEqual(8);
  const before = runs;
  await jest.advanceTimersByTimeAsync(60_000);
  await password();
  await jest.advanceTimersByTimeAsync(1000);
  await password();
  expect(runs).toBe(before + 2);
});

test('after a failure, the last login is kept, the failure is logged, and retries follow with pauses', async () => {
  open(10_000);
  await password();
  printed = () => 'two\nlines';
  await jest.advanceTimersByTimeAsync(10_000);
  expect(told).toEqual([
    'renewed password1',
    expect.stringMatching(
      /^REDIS_AUTH_COMMAND: login printed several lines; .*; the previous login stays in use$/,
    ),
  ]);
  expect(await password()).toBe('password1');
  await jest.advanceTimersByTimeAsync(120_000);
  expect(runs).toBeLessThan(12);
  printed = () => 'good';
  await jest.advanceTimersByTimeAsync(30_000);
  expect(told.at(-1)).toBe('renewed good');
  expect(await password()).toBe('good');
});

test('a slow command delays no connection while the previous login is usable', async () => {
  open(10_000);
  await password();
  let end: (text: string) => void = () => {};
  printed = () =>
    new Promise((resolve) => {
      end = resolve;
    });
  await jest.advanceTimersByTimeAsync(5000);
  const login = password();
  await jest.advanceTimersByTimeAsync(300);
  expect(await login).toBe('password1');
  // Redis refuses the login, so callers wait for a new one.
  const other = password(true);
  await jest.advanceTimersByTimeAsync(3000);
  end('new');
  expect(await other).toBe('new');
  expect(told).toEqual(['renewed password1', 'renewed new']);
  // The same after the login has expired.
  await jest.advanceTimersByTimeAsync(11_000);
  const late = password();
  await jest.advanceTimersByTimeAsync(1000);
  end('newer');
  expect(await late).toBe('newer');
});

test('without any login, every caller gets the error', async () => {
  printed = () => '';
  open();
  await expect(password()).rejects.toThrow(/^REDIS_AUTH_COMMAND: login printed nothing/);
  await expect(password()).rejects.toThrow(/^REDIS_AUTH_COMMAND: login printed nothing/);
  expect(runs).toBe(1);
  expect(told).toEqual([]);
  printed = () => 'good';
  await jest.advanceTimersByTimeAsync(1000);
  expect(await password()).toBe('good');
});

test('the command does not run after the end', async () => {
  open(10_000);
  await password();
  command.close();
  await jest.advanceTimersByTimeAsync(100_000);
  expect([runs, told]).toEqual([1, ['renewed password1']]);
});
