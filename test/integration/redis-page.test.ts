/* Runs the commands of docs/operate/redis.md: they start each kind of Redis, and weir decides with it. */
import { chmodSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { pageText } from '../support/docs/pages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { closeLater } from '../support/process/close-later.js';
import { freePorts } from '../support/process/free-port.js';
import { startProcess } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { toolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { BUS_OFFSET } from '../support/redis/cluster.js';
import { redisCliScript } from '../support/redis/redis-cli.js';
import { startWeir } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: hour, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: second, rate_limit: { unit: second, requests_per_unit: 10 } }
`;
/** A block of commands, with its name. The last command starts weir. */
const BLOCK = /^```bash\n# try: (.*)\n([^`]*)^```$/gm;
const blocks = [...pageText('docs/operate/redis.md').matchAll(BLOCK)].map(([, name = '', text = '']) => {
  const commands = text
    .replaceAll(/\\\n\s*(?=REDIS_)/g, '')
    .trimEnd()
    .split('\n');
  return { name, last: commands.pop() ?? '', servers: commands.join('\n') };
});

/** Returns a function that replaces the ports of a block with free ones. */
async function portsOf(text: string): Promise<(text: string) => string> {
  const pattern = /(?<![\d.])(?:6379|6380|2638[01]|26379|700[123])(?!\d)/g;
  const named = [...new Set(text.match(pattern))];
  const free = await freePorts(named.length, BUS_OFFSET);
  return (part) => part.replaceAll(pattern, (port) => String(free[named.indexOf(port)]));
}

test('the page has commands for each kind', () => {
  expect(blocks.map(({ name }) => name)).toEqual(['single', 'sentinel', 'cluster', 'two-redis']);
});

test.each(blocks)('$name', async ({ servers, last }) => {
  const folder = new TempDir();
  symlinkSync(toolPath('redis-server'), join(folder.path, 'redis-server'));
  chmodSync(folder.write('redis-cli', redisCliScript()), 0o755);
  const withPorts = await portsOf(servers + last);
  const script = `trap 'kill $(jobs -p); wait' EXIT; trap 'exit 0' TERM\n${withPorts(servers)}\necho all started; wait`;
  const shell = startProcess('bash', ['-c', script], {
    cwd: folder.path,
    env: { PATH: [folder.path, process.env['PATH']].join(delimiter) },
  });
  closeLater(shell, () => shell.stop());
  await shell.waitForLine(/^all started$/);

  const [settings = '', command] = withPorts(last).split(/ (?=npm start$)/);
  expect(command).toBe('npm start');
  const env = Object.fromEntries(settings.split(' ').map((setting) => setting.split(/=(.*)/s).slice(0, 2)));
  const weir = await startWeir({ policy: POLICY, env });
  const client = new RlsClient(weir.grpcPort);
  const ask = async (): Promise<unknown> => {
    const { response } = await client.ask('d', [descriptor(['hour=a']), descriptor(['second=a'])]);
    return response?.statuses[0]?.limitRemaining;
  };
  await waitFor('a decision', async () => (await ask()) === 9);
  expect(await ask()).toBe(8);
});
