import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { seededRandom } from '../../support/limiter/seeded-random.js';

const RULES = 100;
const TENANTS = 100_000;
/** Routes that one tenant uses, of {@link RULES}. */
const ROUTES_OF_TENANT = 4;
/** A request ends at most this many milliseconds after its start. */
const LONGEST = 256;
const FIRST_START = Date.UTC(2026, 10, 20);
/** Number of characters that are written together. */
const BLOCK = 64 * 1024;

/** A mapping for the lines of {@link writeLog}, with one descriptor for each request. */
export const MAPPING = `domain: bench
json_format:
  start_time: "%START_TIME%"
  method: "%REQ(:METHOD)%"
  path: "%REQ(:PATH)%"
  response_code: "%RESPONSE_CODE%"
  response_flags: "%RESPONSE_FLAGS%"
  duration: "%DURATION%"
  tenant: "%REQ(X-TENANT)%"
rate_limits:
  - actions:
      - request_headers: { header_name: ":path", descriptor_key: path }
      - request_headers: { header_name: x-tenant, descriptor_key: tenant }
`;

/** Returns a policy with a token bucket of each tenant for each of {@link RULES} routes. */
export function replayedPolicy(): string {
  const rule = (route: number): string => `  - key: path
    value: /v1/route-${route}/*
    share_threshold: true
    descriptors:
      - { key: tenant, rate_limit: { token_bucket: { max_tokens: 100, tokens_per_fill: 5, fill_interval: 1s } } }
`;
  return `domain: bench\ndescriptors:\n${Array.from({ length: RULES }, (_, route) => rule(route)).join('')}`;
}

/**
 * Writes a JSON access log with lines of about 300 bytes. Requests come at random, 1,000 in a second, from
 * {@link TENANTS} whose shares follow Zipf's law. As in Envoy, a line is written when its request ends.
 */
export async function writeLog(path: string, lines: number): Promise<void> {
  const file = createWriteStream(path, { highWaterMark: 16 * BLOCK });
  const random = seededRandom(1);
  const ending = Array.from({ length: LONGEST }, () => '');
  let time = 0;
  let written = 0;
  let block = '';
  for (let i = 0; i < lines; i++) {
    time -= Math.log(1 - random());
    for (; written < Math.floor(time); written++) {
      block += ending[written % LONGEST];
      ending[written % LONGEST] = '';
    }
    const duration = Math.floor(random() * LONGEST);
    ending[(written + duration) % LONGEST] += lineOf(i, written, duration, random);
    if (block.length < BLOCK) continue;
    if (!file.write(block)) await once(file, 'drain');
    block = '';
  }
  for (let i = 0; i < LONGEST; i++) block += ending[(written + i) % LONGEST];
  file.end(block);
  await once(file, 'close');
}

function lineOf(request: number, start: number, duration: number, random: () => number): string {
  const tenant = Math.floor(TENANTS ** random());
  const route = (tenant * 7 + Math.floor(random() * ROUTES_OF_TENANT)) % RULES;
  return `${JSON.stringify({
    start_time: new Date(FIRST_START + start),
    method: 'GET',
    path: `/v1/route-${route}/items/${request % 10_000}?limit=50`,
    protocol: 'HTTP/1.1',
    response_code: 200,
    response_flags: '-',
    bytes_sent: request % 5000,
    duration,
    tenant: `tenant-${tenant}`,
    user_agent: 'curl/8.9.1',
    request_id: `${(request * 7919).toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`,
    authority: 'api.example',
  })}\n`;
}
