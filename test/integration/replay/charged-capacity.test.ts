/* Tests the capacity that `weir replay` reports for limits whose requests are charged at their end. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { SKETCH_ERROR } from '../../../src/replay/tally/quantile-sketch.js';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

const START_MILLIS = Date.parse('2026-11-20T09:00:00Z');
/** A request every 250 ms for 200 s, in which each minute has fewer than the minute before. */
const lines = Array.from({ length: 800 }, (_, at) => at)
  .filter((at) => at % (1 + Math.floor(at / 240)) === 0)
  .map((at) =>
    JSON.stringify({
      t: new Date(START_MILLIS + at * 250).toISOString(),
      tenant: at % 3 === 0 ? 'zoo' : 'acme',
      code: at % 10 === 0 ? 429 : 200,
      took: (at * 7919) % 1500,
      received: 50 + ((at * 31) % 200),
      // Sometimes, the use is unknown.
      sent: at % 40 === 1 ? null : 50 + ((at * 31) % 200),
    }),
  );
folder.write('access.log', `${lines.join('\n')}\n`);

const TENANT = '{ request_headers: { header_name: x-tenant, descriptor_key: tenant } }';
const TOKEN =
  '{ metadata: { descriptor_key: hold, metadata_key: ' +
  '{ key: envoy.filters.http.ratelimit, path: [{ key: hold }] } } }';
const UNKNOWN = `  - apply_on_stream_done: true
    actions: [${TOKEN}, { generic_key: { descriptor_value: done } }]
`;

/** Writes a mapping whose calls at the start have `hits`, and whose calls at the end have the bytes. */
function writeMapping(hits: number, end: string): void {
  const use = end === TOKEN ? '%BYTES_SENT%' : '%BYTES_RECEIVED%';
  folder.write(
    'mapping.yaml',
    `domain: d
log: { time: t, x-tenant: tenant, status: code, duration: took, bytes_sent: sent, bytes_received: received }
rate_limits:
  - { hits_addend: { number: ${hits} }, actions: [${TENANT}] }
  - { apply_on_stream_done: true, hits_addend: { format: "${use}" }, actions: [${end}] }
${end === TOKEN ? UNKNOWN : ''}`,
  );
}

async function ruleFor(limit: string): Promise<ReplayReport['rules'][number]> {
  folder.write('new.yaml', `domain: d\ndescriptors: [{ key: tenant, rate_limit: { ${limit} } }]\n`);
  const files = ['--envoy', 'mapping.yaml', '--json', 'report.json', 'access.log'];
  const args = ['replay', '--policy', 'new.yaml', ...files];
  await host.run({ args, folder: folder.path });
  return JSON.parse(readFileSync(`${folder.path}/report.json`, 'utf8')).rules[0];
}

const bucket = (size: number) =>
  `token_bucket: { max_tokens: ${size}, tokens_per_fill: 40, fill_interval: 1s }`;
const window = (size: number) => `unit: minute, requests_per_unit: ${size}`;
const HOLD = 'hold: { amount: 120, expires_after: 10s';

test.each<[string, number, string, (size: number) => string]>([
  ['a token bucket with charges', 0, TENANT, (size) => `${bucket(size)}, allow_debt: true`],
  ['a window with charges', 1, TENANT, (size) => `${window(size)}, allow_debt: true`],
  ['reservations of a token bucket', 1, TOKEN, (size) => `${bucket(size)}, ${HOLD} }`],
  ['reservations of a window', 1, TOKEN, (size) => `${window(size)}, ${HOLD} }`],
  ['reservations without tokens', 0, TENANT, (size) => `${bucket(size)}, ${HOLD}, pair: oldest }`],
])('%s denies none with the reported capacity', async (_name, hits, end, limit) => {
  writeMapping(hits, end);
  const tight = await ruleFor(limit(600));
  const { none, hundredth } = tight.capacity ?? { none: 0, hundredth: 0 };
  expect(tight.deniedAfter.most).toBeGreaterThan(tight.requests / 10);
  const [enough, less, share] = [
    await ruleFor(limit(none)),
    await ruleFor(limit(none - 2)),
    await ruleFor(limit(Math.ceil(hundredth * (1 + SKETCH_ERROR)))),
  ];
  expect(enough.deniedAfter.least).toBe(0);
  expect(less.deniedAfter.most).toBeGreaterThan(0);
  expect(share.deniedAfter.least).toBeLessThanOrEqual(tight.requests * 0.01);
  // The need does not depend on the limit.
  expect(enough.capacity).toEqual(tight.capacity);
});
