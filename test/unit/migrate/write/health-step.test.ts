/* The step in the README.md of `weir migrate --write` that checks the health of the new service. */
import { readFileSync } from 'node:fs';
import { afterAll, expect, test } from '@jest/globals';
import { runMigrate } from '../../../../src/cli/migrate.js';
import { composeFile, Installations, POLICY } from '../../../support/migrate/installations.js';

const files = new Installations();
afterAll(() => files.remove());

const IMAGE = 'image: envoyproxy/ratelimit:1';

/** Returns the line of README.md that checks the health, without paths of the test. */
async function stepFor(texts: Readonly<Record<string, string>>): Promise<string | undefined> {
  const folder = files.folderOf(texts);
  const named = Object.keys(texts).filter((name) => !name.startsWith('.'));
  await runMigrate([...named.map((name) => `${folder}/${name}`), '--write', `${folder}/out`], {
    out: () => undefined,
    err: (text) => {
      throw new Error(text);
    },
  });
  const page = readFileSync(`${folder}/out/README.md`, 'utf8').replaceAll(`${folder}/`, '');
  return page.split('\n').find((line) => /^\d+\. Check that weir is healthy/.test(line));
}

const CURL = /`curl (http:\S+)` returns `OK` as soon as weir has reached Redis/;

test.each([
  ['ports: ["18080:8080"]', '127.0.0.1:18080'],
  ['ports: ["18081:8081", "18080:8080/tcp"]', '127.0.0.1:18080'],
  ['ports: ["8080:8080/udp", "18080:8080"]', '127.0.0.1:18080'],
  ['ports: ["10.0.0.7:18080:8080"]', '10.0.0.7:18080'],
  ['ports: ["0.0.0.0:18080:8080"]', '127.0.0.1:18080'],
  ['ports: ["[::1]:18080:8080"]', '[::1]:18080'],
  ['ports: ["18079-18081:8079-8081"]', '127.0.0.1:18080'],
  ['ports: ["$\x7bHTTP:-18080}:8080"]', '127.0.0.1:18080'],
  ['ports: ["$\x7bASKED}:8080"]', '127.0.0.1:18088'],
  ['ports: [{ target: 8080, published: "18080", protocol: tcp }]', '127.0.0.1:18080'],
  ['ports: [{ target: 8080, published: 18080, host_ip: 10.0.0.7 }]', '10.0.0.7:18080'],
  ['environment: { PORT: 9090 }\nports: ["18080:8080", "19090:9090"]', '127.0.0.1:19090'],
  ['network_mode: host', '127.0.0.1:8080'],
])('%s: curl asks %s', async (service, address) => {
  const step = await stepFor({ 'c.yaml': composeFile(`${IMAGE}\n${service}`), '.env': 'ASKED=18088\n' });
  expect(CURL.exec(step ?? '')?.[1]).toBe(`http://${address}/healthcheck`);
});

test.each(['ports: ["8080"]', 'ports: ["127.0.0.1::8080"]', 'ports: [{ target: 8080 }]'])(
  '%s: docker is asked for the port that it chose',
  async (service) => {
    const step = await stepFor({ 'c.yaml': composeFile(`${IMAGE}\n${service}`) });
    expect(step).toMatch(
      /`curl http:\/\/\$\(docker compose .* -f out\/c\.yaml port ratelimit 8080\)\/healthcheck`/,
    );
  },
);

test.each(['ports: ["8081:8081"]', 'expose: ["8080"]', 'ports: ["8080:8080/udp", "a:b"]'])(
  '%s publishes no HTTP port: the service is asked within its container',
  async (service) => {
    const step = await stepFor({ 'c.yaml': composeFile(`${IMAGE}\n${service}`) });
    expect(step).toMatch(/is not published.*`docker compose .* -f out\/c\.yaml exec ratelimit weir health`/);
  },
);

test.each([
  ['always', true],
  ['build', true],
  ['missing', false],
])('pull_policy: %s is mentioned with the image: %p', async (policy, isSaid) => {
  const folder = files.folderOf({ 'c.yaml': composeFile(`${IMAGE}\npull_policy: ${policy}`) });
  await runMigrate([`${folder}/c.yaml`, '--write', `${folder}/out`], {
    out: () => undefined,
    err: () => undefined,
  });
  const page = readFileSync(`${folder}/out/README.md`, 'utf8');
  expect(page.includes(`\`pull_policy: ${policy}\``)).toBe(isSaid);
});

test('the ports of several files are combined', async () => {
  const texts = { 'a.yaml': composeFile(IMAGE), 'b.yaml': composeFile('ports: ["18080:8080"]') };
  expect(CURL.exec((await stepFor(texts)) ?? '')?.[1]).toBe('http://127.0.0.1:18080/healthcheck');
});

test('without a compose file, each env file is passed to docker once', async () => {
  const folder = files.folderOf({ 'weir.env': 'LOG_LEVEL=info\n', 'config/shop': POLICY });
  await runMigrate([folder, '--env', `${folder}/weir.env`, '--write', `${folder}/out`], {
    out: () => undefined,
    err: () => undefined,
  });
  const page = readFileSync(`${folder}/out/README.md`, 'utf8');
  expect(page.match(/--env-file/g)).toHaveLength(1);
  expect(page).toContain('- `DEBUG_HOST=0.0.0.0`: weir bucket and weir top then fail with status 403');
});

test('without a compose file, the ports in the variables are published', async () => {
  const folder = files.folderOf({ 'rl.env': 'PORT=9090\nGRPC_PORT=9091\n', 'config/shop': POLICY });
  await runMigrate([`${folder}/rl.env`, folder, '--write', `${folder}/out`], {
    out: () => undefined,
    err: () => undefined,
  });
  const page = readFileSync(`${folder}/out/README.md`, 'utf8');
  expect(page).toContain('-p 9091:9091 -p 9090:9090 ');
  expect(page).toContain('curl http://127.0.0.1:9090/healthcheck');
});
