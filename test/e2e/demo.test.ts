import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { httpRequest } from '../support/process/http-client.js';
import { runToEnd, startProcess } from '../support/process/processes.js';
import { optionalToolPath, repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { shippedAlerts } from '../support/prometheus/rule-tests.js';
import { isAlive } from '../support/weir/workers.js';

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
  // All new tokens, and those that arrive during the second burst on a busy machine.
  expect(Number(later)).toBeGreaterThanOrEqual(10);
  const other = rows[find('1 × GET /open/v5/groups')] ?? [];
  expect(other.slice(1, 5)).toEqual(['200', '1', '1000', '999']);
  expect(stdout).toContain('Stopped.');
});

(optionalToolPath('prometheus') === undefined ? test.skip : test)(
  'with --watch, the demo prints an address that shows denials, and stops all processes at its end',
  async () => {
    const demo = startProcess(process.execPath, [DEMO, '--watch']);
    await demo.waitForLine(/Press Ctrl-C to stop everything/, 60_000);
    const text = demo.stdout();
    const graph = /http:\/\/127\.0\.0\.1:(\d+)(\S*graph)\?g0\.expr=(\S+?)&/.exec(text) ?? [];
    const [, port = '', page = '', expr = ''] = graph;
    expect((await httpRequest(Number(port), page)).status).toBe(200);
    expect((await httpRequest(Number(port), page.replace(/graph$/, 'alerts'))).status).toBe(200);
    await waitFor('denials in Prometheus', async () => {
      const { body } = await httpRequest(Number(port), `/api/v1/query?query=${expr}`);
      const { result } = JSON.parse(body).data as {
        result: { metric: { code: string }; value: [0, string] }[];
      };
      return result.some(({ metric, value }) => metric.code === 'OVER_LIMIT' && Number(value[1]) > 0);
    });
    const rules = JSON.parse((await httpRequest(Number(port), '/api/v1/rules')).body);
    expect(rules.data.groups.length).toBeGreaterThan(0);
    expect(rules.data.groups.flatMap(({ rules: all }: { rules: { health: string }[] }) => all).length).toBe(
      shippedAlerts().length,
    );
    const [, debug = ''] = /weir's page +http:\/\/127\.0\.0\.1:(\d+)\//.exec(text) ?? [];
    expect((await httpRequest(Number(debug), '/')).status).toBe(200);
    expect(text).toContain('deploy/grafana/weir.json');

    const children = readFileSync(`/proc/${demo.pid}/task/${demo.pid}/children`, 'utf8').trim().split(' ');
    expect(children.length).toBeGreaterThanOrEqual(3);
    demo.signal('SIGINT');
    expect(await demo.exited).toEqual({ code: 0, signal: null });
    expect(demo.stdout()).toContain('Stopped.');
    expect(demo.stderr()).toBe('');
    expect(children.map(Number).filter(isAlive)).toEqual([]);
  },
);

test('the demo explains itself, and rejects unknown arguments', async () => {
  await expect(runToEnd(process.execPath, [DEMO, '--help'])).resolves.toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Usage: npm run demo'),
  });
  await expect(runToEnd(process.execPath, [DEMO, '--watch', '--fast'])).resolves.toMatchObject({ code: 2 });
  await expect(runToEnd(process.execPath, [DEMO, '--fast'])).resolves.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Usage: npm run demo'),
  });
});
