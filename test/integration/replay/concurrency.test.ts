/* Tests the capacity of concurrency limits in the reports of `weir replay`. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

const START_MILLIS = Date.parse('2026-11-20T09:00:00Z');
const REQUESTS = 400;
/** A request every 20 ms. A few of them last longer than 0.6 s. */
const logged = Array.from({ length: REQUESTS }, (_, at) => ({
  startMillis: START_MILLIS + at * 20,
  tenant: at % 3 === 0 ? 'zoo' : 'acme',
  code: at % 10 === 0 ? 429 : 200,
  durationMillis: ((at * 7919) % 600) + (at >= 200 && at < 206 ? 500 : 0),
}));
const lines = logged.map(({ startMillis, tenant, code, durationMillis }) =>
  JSON.stringify({ t: new Date(startMillis).toISOString(), tenant, code, took: durationMillis }),
);
folder.write('access.log', `${lines.join('\n')}\n`);

const START = `rate_limits:
  - actions: [{ request_headers: { header_name: x-tenant, descriptor_key: tenant } }]
`;
const END = `  - apply_on_stream_done: true
    actions:
      - metadata:
          source: DYNAMIC
          descriptor_key: hold
          metadata_key: { key: envoy.filters.http.ratelimit, path: [{ key: hold }] }
`;
const mapping = (members: string, rateLimits: string): string =>
  `domain: d\nlog: { time: t, x-tenant: tenant, status: code${members} }\n${rateLimits}`;
folder.write('mapping.yaml', mapping(', duration: took', START + END));
folder.write('no-end.yaml', mapping(', duration: took', START));
folder.write('no-duration.yaml', mapping('', START + END));

/** Runs `weir replay` with a limit of `max` concurrent requests. */
async function replayed(max: number, config = 'mapping.yaml') {
  const limit = `{ concurrency: { max: ${max} } }`;
  folder.write('new.yaml', `domain: d\ndescriptors: [{ key: tenant, rate_limit: ${limit} }]\n`);
  const files = ['--json', 'report.json', '--html', 'report.html', 'access.log'];
  const args = ['replay', '--policy', 'new.yaml', '--envoy', config, ...files];
  return host.run({ args, folder: folder.path });
}

async function reportFor(max: number): Promise<ReplayReport> {
  await replayed(max);
  return JSON.parse(readFileSync(`${folder.path}/report.json`, 'utf8'));
}

/** Returns the requests of a tenant that are in flight when each of its requests starts. */
function inFlight(tenant: string): readonly number[] {
  const own = logged.filter((request) => request.tenant === tenant);
  return own.map(
    ({ startMillis }, at) =>
      1 + own.slice(0, at).filter((one) => one.startMillis + one.durationMillis > startMillis).length,
  );
}

test('the reports contain the peak in flight of all requests, also of those that the limit denies', async () => {
  const { stdout } = await replayed(2);
  const peaks = [...inFlight('acme'), ...inFlight('zoo')].toSorted((one, other) => other - one);
  const [none = 0] = peaks;
  const [thousandth = 0, hundredth = 0] = [0.001, 0.01].map((share) => peaks[Math.floor(REQUESTS * share)]);
  expect(hundredth).toBeLessThan(none);
  const report = await reportFor(2);
  expect(report.rules[0]?.capacity).toEqual({ none, thousandth, hundredth });
  expect(report.rules[0]?.peakUse).toBe(none / 2);
  const cells = [none, thousandth, hundredth].map(String);
  expect(stdout).toMatch(new RegExp(`\\ntenant +${cells.join(' +')}  concurrency: 2 requests\\n`));
  const html = readFileSync(`${folder.path}/report.html`, 'utf8');
  expect(html).toContain(cells.map((cell) => `<td class="number">${cell}</td>`).join(''));
});

test('the reported capacities deny as many requests as the report says', async () => {
  const { capacity } = (await reportFor(2)).rules[0] as ReplayReport['rules'][number];
  const { none = 0, hundredth = 0 } = capacity ?? {};
  const deniedWith = async (max: number) => (await reportFor(max)).rules[0]?.deniedAfter.most ?? Number.NaN;
  expect(await deniedWith(none)).toBe(0);
  expect(await deniedWith(none - 1)).toBeGreaterThan(0);
  expect(await deniedWith(hundredth)).toBeLessThanOrEqual(REQUESTS * 0.01);
});

test('without hold tokens, the report does not tell the capacity', async () => {
  const { stdout } = await replayed(2, 'no-end.yaml');
  expect(stdout).not.toContain('DENIES NONE');
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    'does not tell which capacity of some limits would suffice, because no descriptor ends some of the holds.',
  );
});

test('a log without durations is refused', async () => {
  const { stderr, code } = await replayed(2, 'no-duration.yaml');
  expect(code).toBe(1);
  expect(stderr).toContain('duration: "%DURATION%"   # for no-duration.yaml:');
  expect(stderr).toContain(': the hold token');
});
