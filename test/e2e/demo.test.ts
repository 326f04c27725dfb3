import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';

const DEMO = join(repositoryRoot, 'build/deploy/demo/demo.js');

test('the demo prints what the policy promises, and stops', async () => {
  const { code, stdout, stderr } = await runToEnd(process.execPath, [DEMO]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s{2,}/));
  const find = (what: string) => rows.findIndex(([first]) => first?.startsWith(what));

  const burst = find('200 × GET /open/v5/user-chats');
  const [, status, ok, limit, remaining, reset, throttled] = rows[burst] ?? [];
  expect([status, limit, remaining, throttled]).toEqual(['200', '100', '0', '-']);
  expect(Number(ok)).toBeGreaterThanOrEqual(100);
  expect(reset).toMatch(/^\d{10}$/);
  const [deniedStatus, denied, , , , deniedThrottled] = rows[burst + 1] ?? [];
  expect([deniedStatus, deniedThrottled]).toEqual(['429', 'true']);
  expect(Number(ok) + Number(denied)).toBe(200);

  const [, , later] = rows[find('100 × GET /open/v5/user-chats, 1 s later')] ?? [];
  // On a busy machine some of what comes within that second is taken by the first burst already.
  expect(Number(ok) + Number(later)).toBeGreaterThanOrEqual(109);
  const other = rows[find('1 × GET /open/v5/groups')] ?? [];
  expect(other.slice(1, 5)).toEqual(['200', '1', '1000', '999']);
  expect(stdout).toContain('Stopped.');
}, 60_000);

test('the demo explains itself, and refuses what it does not know', async () => {
  await expect(runToEnd(process.execPath, [DEMO, '--help'])).resolves.toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Usage: npm run demo'),
  });
  await expect(runToEnd(process.execPath, [DEMO, '--fast'])).resolves.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Usage: npm run demo'),
  });
});
