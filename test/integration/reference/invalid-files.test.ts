/*
 * Tests that weir rejects each file that the reference rejects. The reference then serves nothing, so each file gets a
 * separate process here; weir serves the valid domains next to the invalid ones.
 */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RawClient } from '../../support/grpc/grpc-client.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { call } from './calls.js';
import { type Answer, type CallStep, NONE, ok } from './case.js';
import { INVALID_FILES, type InvalidFile } from './cases/invalid-files.js';
import { REFERENCE_PROGRAM, startTarget, type Target } from './target.js';

const GOOD = `domain: good
descriptors:
  - key: a
    rate_limit: { unit: year, requests_per_unit: 4294967295 }
`;
const NOT_LOADED: Answer = { error: { code: 2, text: 'no rate limit configuration loaded' } };

function slug({ name }: InvalidFile): string {
  return `bad-${name.replaceAll(/[^a-zA-Z0-9]+/g, '-')}`;
}

function write(folder: TempDir, files: readonly InvalidFile[]): void {
  for (const file of files) {
    folder.write(`ratelimit/config/${slug(file)}.yaml`, file.text.replaceAll('<domain>', slug(file)));
  }
}

let redis: RedisServer;
let folder: TempDir;
let target: Target | undefined;

function environment(): Record<string, string> {
  return {
    RUNTIME_ROOT: folder.path,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_WATCH_ROOT: 'false',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `127.0.0.1:${redis.port}`,
    USE_STATSD: 'false',
    LOG_LEVEL: 'error',
  };
}

async function ask(domain: string, get: Answer): Promise<void> {
  const client = new RawClient(`127.0.0.1:${target?.grpcPort}`);
  const step: CallStep = { ask: { entries: 'a=1', hits: 0 }, domain, get };
  const { actual, expected } = await call(client, step, get, { domain, resetOf: undefined });
  expect(actual).toEqual(expected);
}

/** A request with 0 hits leaves the bucket unchanged. */
const OF_GOOD: Answer = { statuses: [ok('4294967295/year', 4294967295)] };

/**
 * The reference gets all files. weir gets all of them in unit/config/read/reference-rejects.test.ts, and here only as
 * many as a log shows at once.
 */
const FILES = REFERENCE_PROGRAM === undefined ? INVALID_FILES.slice(0, 10) : INVALID_FILES;

beforeAll(async () => {
  redis = await startRedis();
});

describe('rejected files', () => {
  beforeAll(async () => {
    folder = new TempDir();
    if (REFERENCE_PROGRAM !== undefined) return;
    folder.write('ratelimit/config/good.yaml', GOOD);
    write(folder, FILES);
    target = await startTarget(environment());
  });
  afterAll(async () => {
    await target?.stop();
  });

  test.each(FILES.map((file) => [file.name, file] as const))('%s', async (_name, file) => {
    if (REFERENCE_PROGRAM !== undefined) return rejectedByReference(file);
    const complaints = target?.lines().filter((line) => line.includes(`${slug(file)}.yaml`)) ?? [];
    expect(complaints.length).toBeGreaterThan(0);
    if (file.line !== undefined) expect(complaints.join('\n')).toContain(`${slug(file)}.yaml:${file.line}:`);
    await ask(slug(file), { statuses: [NONE] });
    await ask('good', OF_GOOD);
  });

  if (REFERENCE_PROGRAM === undefined) {
    test('are rejected on reload as well, and their last valid versions stay', async () => {
      for (const file of FILES) {
        const good = GOOD.replace('domain: good', `domain: ${slug(file)}`);
        folder.write(`ratelimit/config/${slug(file)}.yaml`, good);
      }
      await waitFor('all to be good', async () => {
        for (const file of FILES) await ask(slug(file), OF_GOOD);
        return true;
      });
      const before = target?.lines().length ?? 0;
      write(folder, FILES);
      for (const file of FILES) {
        const place = `${slug(file)}.yaml${file.line === undefined ? '' : `:${file.line}:`}`;
        await waitFor(
          `a complaint about ${place}`,
          async () =>
            target
              ?.lines()
              .slice(before)
              .some((line) => line.includes(place)) === true || undefined,
        );
        await ask(slug(file), OF_GOOD);
      }
    });

    test('a valid file next to them is replaced while they are invalid', async () => {
      writeFileSync(folder.join('ratelimit/config/good.yaml'), GOOD.replace('4294967295', '7'));
      await waitFor('the other limit', async () => {
        await ask('good', { statuses: [ok('7/year', 7)] });
        return true;
      });
    });
  }
});

if (REFERENCE_PROGRAM === undefined) {
  test('a start with invalid files only fails and names them', async () => {
    const bad = new TempDir();
    write(bad, FILES);
    const refused = await startTarget({ ...environment(), RUNTIME_ROOT: bad.path }, { untilHealthy: false });
    const { code } = await refused.exited;
    bad.remove();
    expect(code).toBeGreaterThan(0);
    const output = refused.lines().join('\n');
    expect(FILES.filter((file) => !output.includes(`${slug(file)}.yaml`))).toEqual([]);
  });
}

async function rejectedByReference(file: InvalidFile): Promise<void> {
  const own = new TempDir();
  write(own, [file]);
  target = await startTarget({ ...environment(), RUNTIME_ROOT: own.path });
  try {
    await ask(slug(file), NOT_LOADED);
    expect(target.lines().join('\n')).toMatch(file.reference);
  } finally {
    await target.stop();
    own.remove();
  }
}
