/*
 * Runs the commands of deploy/README.md for one machine as printed, with the real Envoy. Only ports, which can be in
 * use, and the folder for temporary files differ.
 */
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { withChanges } from '../support/envoy/envoy.js';
import { freePorts } from '../support/process/free-port.js';
import { runToEnd, type StartedProcess, startProcess } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { repositoryRoot, toolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';

const page = readFileSync(join(repositoryRoot, 'deploy/README.md'), 'utf8');
const part = page.slice(page.indexOf('To try it on one machine'));
const [first = '', second = ''] = [...part.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);

const folder = new TempDir();

test('starts weir, an upstream and Envoy, which answer', async () => {
  const started: StartedProcess[] = [];
  try {
    await follow(started);
  } finally {
    // npm forwards SIGTERM to weir, and ends after weir.
    for (const one of started.reverse()) await one.stop();
  }
});

/** Runs the commands of the page, checks their output, and adds long-running processes to `started`. */
async function follow(started: StartedProcess[]): Promise<void> {
  const [grpc = 0, http = 0, debug = 0, upstream = 0, listener = 0, admin = 0] = await freePorts(6);
  const bootstrap = withChanges(readFileSync(join(repositoryRoot, 'deploy/envoy/envoy.yaml'), 'utf8'), [
    ['port_value: 8081', `port_value: ${grpc}`],
    ['port_value: 9090', `port_value: ${upstream}`],
    ['port_value: 10000', `port_value: ${listener}`],
    ['port_value: 9901', `port_value: ${admin}`],
    // A busy machine can be late, and Envoy ignores a late decision.
    ['timeout: 0.25s', 'timeout: 10s'],
  ]);
  const commands = withChanges(first, [
    [':8080/', `:${http}/`],
    ['echo-upstream.js 9090', `echo-upstream.js ${upstream}`],
    ['/tmp/', `${folder.path}/`],
    ['deploy/envoy/envoy.yaml', folder.write('deploy/envoy.yaml', bootstrap)],
  ]);
  const bin = folder.join('bin');
  mkdirSync(bin);
  symlinkSync(toolPath('envoy'), join(bin, 'envoy'));
  const options = {
    cwd: repositoryRoot,
    env: {
      PATH: [bin, process.env['PATH']].join(delimiter),
      GRPC_PORT: String(grpc),
      PORT: String(http),
      DEBUG_PORT: String(debug),
    },
  };
  for (const line of commands.trimEnd().split('\n')) {
    // Starts a long-running command with `exec env`, so that it keeps the process id of the shell.
    const [, runsOn] = /^(.*) &$|^(?=envoy )/.exec(line) ?? [undefined, null];
    if (runsOn !== null) {
      started.push(startProcess('sh', ['-c', `exec env ${runsOn ?? line}`], options));
    } else {
      expect(await runToEnd('sh', ['-c', line], options)).toMatchObject({ code: 0 });
    }
  }
  expect(started).toHaveLength(3);

  const [one = '', many = ''] = withChanges(second, [[':10000/', `:${listener}/`]]).split('\n');
  const answer = await waitFor('an answer of the upstream', async () => {
    const { stdout } = await runToEnd('sh', ['-c', one], options);
    return stdout.startsWith('HTTP/1.1 200 ') && stdout.includes('x-ratelimit-limit: 100')
      ? stdout
      : undefined;
  });
  expect(answer).toContain('"path":"/open/v5/user-chats"');
  const { stdout } = await runToEnd('sh', ['-c', many], options);
  expect(stdout).toMatch(/^ *\d+ 200\n *\d+ 429\n$/);
  await started[2]?.waitForLine(/^\{.*"status":429/);
}
