/* Tests that an API key of one domain that is sent to another known domain is never shown or stored. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startStatsdListener } from '../support/statsd/statsd-listener.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const SECRET = 'raw-s3cret-of-a-partner';
const hex = (text: string): string => createHash('sha256').update(text).digest('hex');
const LIMIT = 'rate_limit: { token_bucket: { max_tokens: 5, fill_interval: 1h } }';
const DERIVING = `domain: deriving
derive: [{ entry: who, from: [token], sha256: { ${hex('known')}: acme } }]
descriptors: [{ key: who, ${LIMIT} }]
`;
const OTHER = `domain: other
descriptors:
  - { key: token, detailed_metric: true, ${LIMIT} }
  - { key: token, value: ${SECRET}-of-the-policy, ${LIMIT} }
`;

test.each([{ workers: '0' }, { workers: '2' }])(
  'an API key sent to another domain is hidden, also after a reload that makes it a key there, with $workers workers',
  async ({ workers }) => {
    const dir = new TempDir();
    dir.write('other.yaml', OTHER);
    const redis = await startRedis();
    const admin = redisClient(redis.port);
    const statsd = await startStatsdListener();
    const server = await startWeir({
      env: {
        CONFIG_PATH: dir.path,
        REDIS_URL: `127.0.0.1:${redis.port}`,
        LOG_LEVEL: 'debug',
        RESPONSE_DYNAMIC_METADATA: 'true',
        DECISION_METADATA: 'true',
        USE_STATSD: 'true',
        STATSD_HOST: '127.0.0.1',
        STATSD_PORT: String(statsd.port),
        STATS_FLUSH_INTERVAL: '50ms',
        ...(workers !== '0' && { WORKERS: workers }),
      },
    });
    const client = new RlsClient(server.grpcPort);
    const says = (pattern: RegExp): boolean => server.log().some(({ msg }) => pattern.test(String(msg)));

    writeFileSync(dir.join('deriving.yaml'), DERIVING);
    await waitFor('the reload', () => says(/^policy reloaded$/));
    const [warning] = server
      .log()
      .filter(({ msg }) => /another domain now declares this key as secret/.test(String(msg)));
    expect(warning).toMatchObject({ key: 'token', domains: ['other'] });
    // Workers get the policies a little later than the primary; the first calls use another value.
    await waitFor('the new policies to be in force', async () => {
      const { response } = await client.ask('deriving', [descriptor(['token=known'])]);
      return response?.statuses[0]?.currentLimit !== undefined;
    });

    const limit = { requestsPerUnit: 5, unit: 6 };
    const answers = [];
    for (const text of [`token=${SECRET}`, `token=${SECRET}-of-the-policy`]) {
      for (let call = 0; call < 3; call++) {
        answers.push(await client.ask('other', [descriptor([text])]));
        answers.push(await client.ask('other', [descriptor([text], { limit })]));
        answers.push(await client.ask('other', [descriptor([text, 'unmatched=x'])]));
      }
    }
    for (const { response } of answers) expect(response?.overallCode).toBe(CODE.OK);
    const keys = await admin.keys('*');
    expect(keys.filter((key) => key.includes(hex(SECRET))).length).toBeGreaterThanOrEqual(2);
    await waitFor('the statistics to come', () => statsd.names().some((name) => name.includes('redacted')));
    const log = server.process.lines().join('\n');
    const shown: Readonly<Record<string, string>> = {
      answers: JSON.stringify(answers),
      keys: keys.join(),
      statsd: statsd.names().join(),
      log,
      ...(await pagesOf(server)),
    };
    for (const [view, text] of Object.entries(shown)) {
      expect([view, text.length > 0, text.includes(SECRET)]).toEqual([view, true, false]);
    }
    expect(log).toContain('[redacted sha256:');
  },
);

async function pagesOf(server: WeirServer): Promise<Record<string, string>> {
  const pages: Record<string, string> = {};
  for (const [port, path] of [
    [server.httpPort, '/metrics'],
    [server.debugPort, '/stats'],
    [server.debugPort, '/rlconfig'],
    [server.debugPort, '/rlconfig?format=json'],
  ] as const) {
    const { status, body } = await httpRequest(port, path);
    expect([path, status]).toEqual([path, 200]);
    pages[path] = body;
  }
  return pages;
}
