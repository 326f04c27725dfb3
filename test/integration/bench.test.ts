import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { TITLES, textHeading } from '../bench/load/table.js';
import { runToEnd } from '../support/process/processes.js';
import { repositoryRoot } from '../support/process/tools.js';
import { startWeir } from '../support/weir/weir.js';

const RUN = join(repositoryRoot, 'build/test/bench/run.js');

test('npm run bench -- --help prints its usage without downloading anything', async () => {
  const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8'));
  // The steps before the program itself do not know its arguments.
  for (const name of ['bench', 'bench:compare']) {
    expect(scripts[name]).toMatch(
      /^node \.ci\/prepare\.mjs && exec "\$\(node \.ci\/node\.mjs\)" build\/test\/\w+\/\w+\.js$/,
    );
  }
  expect(await runToEnd(process.execPath, [RUN, '--help'], { env: { WEIR_TEST_H2LOAD: '' } })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Usage: npm run bench/),
    stderr: '',
  });
});

test('titles of the table are separated', () => {
  expect(textHeading().trim().split(/ {2,}/)).toEqual([...TITLES]);
});

/** Checks only that the results exist. The results of a quick run have no meaning. */
test('npm run bench measures weir and the baseline, and prints a table', async () => {
  const args = [RUN, 'load', '--quick', 'all denied, 1,000 tenants'];
  const { code, stdout, stderr } = await runToEnd(process.execPath, args);
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.split('\n').filter((line) => line.startsWith('  '));
  const rows = lines.map((line) => line.trim().split(/ {2,}/));
  expect(rows.map(([target]) => target)).toEqual([
    'server µs',
    'empty grpc-js handler',
    'weir, memory',
    'weir, Redis',
  ]);
  for (const [, server, redis, ...others] of rows.slice(1)) {
    for (const figure of [server, ...others]) expect(Number(figure)).toBeGreaterThan(0);
    // The deny cache answers denials, so Redis has nearly no work in a quick run.
    expect(redis).toMatch(/^(–|\d+\.\d)$/);
  }
});

test('npm run bench compares weir in memory with a server that sends the same bytes', async () => {
  const { code, stdout, stderr } = await runToEnd(process.execPath, [RUN, 'load', '--quick', 'one hot key']);
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/\n {2}weir, memory .* \d+\.\d\d × ping-pong\n/);
  expect(stdout).toMatch(/\n {2}ping-pong of the same bytes +\d+\.\d /);
});

test('micro benchmarks print their results', async () => {
  const args = [RUN, 'micro', '--quick', '3 descriptors'];
  const { code, stdout } = await runToEnd(process.execPath, args);
  expect(code).toBe(0);
  expect(stdout).toMatch(/decide\n {2}3 descriptors +\d+ +\d+ ns/);
});

test('npm run bench -- worst measures requests, which are decided or given up as the table says', async () => {
  const args = [RUN, 'worst', '--quick'];
  const { code, stdout, stderr } = await runToEnd(process.execPath, args, { timeoutMs: 300_000 });
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  const rows = stdout.split('\n').map((line) => line.split(/ {2,}/));
  for (const request of [
    '128 long values',
    'JSON, 1,000 entries',
    'start of 56 holds',
    '16 lists of 16 limits',
  ]) {
    const [one, , patterns] = rows.filter(([name]) => name === request);
    expect(one).toEqual([request, 'one rule', ...Array(4).fill(expect.stringMatching(/^\d+$/))]);
    expect(patterns).toContain('above MAX_MATCH_WORK');
  }
}, 320_000);

test('part of a name selects a file or its cases, and other files print nothing', async () => {
  const named = await runToEnd(process.execPath, [RUN, 'micro', '--quick', 'decide']);
  expect(named.stderr.split('\n').filter((line) => line.startsWith('micro: '))).toEqual(['micro: decide']);
  expect(
    named.stdout
      .split('\n')
      .filter((line) => /^\S/.test(line))
      .slice(1),
  ).toEqual(['decide']);
  const none = await runToEnd(process.execPath, [RUN, 'load', '--quick', 'nobody']);
  expect(none).toMatchObject({ code: 2, stdout: '' });
  expect(none.stderr).toContain('No case has "nobody" in its name. --list prints');
});

test('the load client ends with an error message if a call is not answered with a decision', async () => {
  const server = await startWeir();
  const order = {
    ...{ host: '127.0.0.1', port: server.grpcPort, tls: false, message: '', requests: 10 },
    ...{ connections: 1, streams: 2, tenants: 1, firstTenant: 0 },
  };
  const file = join(repositoryRoot, 'build/test/bench/load/load-client.js');
  const { code, stdout, stderr } = await runToEnd(process.execPath, [file, JSON.stringify(order)]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/a call got no decision: .*grpc-status 3/);
});

test.each([
  ['an unknown option', ['--rate', '5'], '--rate is not an option'],
  ['a target without its process', ['load', '--target', '127.0.0.1:8081'], '--target requires --pid'],
  ['an invalid number', ['--rounds', 'many'], '--rounds: "many" is not a positive number'],
])('%s ends the run with an error message', async (_, args, message) => {
  const { code, stderr } = await runToEnd(process.execPath, [RUN, ...args]);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});
