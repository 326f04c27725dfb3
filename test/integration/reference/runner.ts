/*
 * Runs the cases of `cases/` against a server that is started like envoyproxy/ratelimit (the reference): only with its
 * variables and its directory layout, and with a real Redis. All cases of a group share one process, and each has its
 * own domain and policy file.
 *
 * The expected answers come from the reference. This command runs the same cases against it:
 *
 *     WEIR_TEST_REFERENCE=/path/to/ratelimit npx jest --selectProjects integration --testPathPatterns reference
 *
 * A case in which weir deliberately answers differently contains the reason (`differs`) and the answer of the
 * reference, and both are checked. `npm test` does not need the reference.
 *
 * Windows begin on the clock: if a window ended during a failed comparison, the case runs again with an empty Redis.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { RawClient } from '../../support/grpc/grpc-client.js';
import { httpRequest } from '../../support/process/http-client.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { type StatsdListener, startStatsdListener } from '../../support/statsd/statsd-listener.js';
import { type Comparison, call, checkHealth, request } from './calls.js';
import {
  type Answer,
  type CallStep,
  type HttpStep,
  type ReferenceCase,
  type Status,
  type Step,
  UNIT_SECONDS,
  type Unit,
} from './case.js';
import { REFERENCE_PROGRAM, startTarget, type Target } from './target.js';

/** The resources of a group. */
export interface Surroundings {
  readonly redis: RedisServer;
  /** A second Redis, for a group with `perSecond`. */
  readonly perSecond: RedisServer | undefined;
  readonly statsd: StatsdListener;
  /** RUNTIME_ROOT; the files are in `ratelimit/config` below it. */
  readonly root: string;
}

export interface GroupOptions {
  readonly cases: readonly ReferenceCase[];
  /** Variables in addition to {@link usualEnvironment}; an empty text removes one. */
  readonly env?:
    | Readonly<Record<string, string>>
    | ((surroundings: Surroundings) => Readonly<Record<string, string>>);
  /** Further arguments of redis-server. */
  readonly redisArgs?: readonly string[];
  /** Starts a second Redis. */
  readonly perSecond?: true;
  /** Directory of the policy files below RUNTIME_ROOT. */
  readonly directory?: string;
  /** Further files, by path below RUNTIME_ROOT. */
  readonly files?: Readonly<Record<string, string>>;
  /** The gRPC client that replaces the one in clear text. */
  readonly client?: (target: Target, surroundings: Surroundings) => RawClient;
  /** False if the server does not become healthy. */
  readonly untilHealthy?: false;
  /** Runs between the start and the cases. */
  readonly before?: (surroundings: Surroundings) => Promise<void>;
  /** Defines more tests, which run after the cases. */
  readonly more?: (running: () => { readonly target: Target } & Surroundings) => void;
}

const STATS = 'ratelimit.service.rate_limit.';
const FLUSH = '50ms';
const ATTEMPTS = 25;

/** Returns the variables that every group starts with. */
function usualEnvironment({ redis, statsd, root }: Surroundings): Record<string, string> {
  return {
    RUNTIME_ROOT: root,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `127.0.0.1:${redis.port}`,
    USE_STATSD: 'true',
    STATSD_HOST: '127.0.0.1',
    STATSD_PORT: String(statsd.port),
    STATS_FLUSH_INTERVAL: FLUSH,
    LOG_LEVEL: 'error',
  };
}

/** Returns the domain of a case: its name, without characters that are invalid in a statistic or a file name. */
export function domainOf({ name }: ReferenceCase): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
}

/** Describes one group: starts everything, runs every case, and checks the statistics once more at the end. */
export function describeGroup(title: string, given: GroupOptions): void {
  // A single file that the reference rejects would leave it without any policy.
  const cases = given.cases.filter((one) => REFERENCE_PROGRAM === undefined || one.notReference !== true);
  const options = { ...given, cases };
  const domains = new Set(cases.map(domainOf));
  if (domains.size !== cases.length) throw new Error(`two cases of "${title}" have one name`);

  describe(title, () => {
    let surroundings: Surroundings;
    let target: Target;
    let client: RawClient;

    beforeAll(async () => {
      const root = new TempDir().path;
      const redis = await startRedis({ args: options.redisArgs ?? [] });
      const perSecond = options.perSecond && (await startRedis());
      surroundings = { redis, perSecond, statsd: await startStatsdListener(), root };
      writePolicies(root, options);
      const more = typeof options.env === 'function' ? options.env(surroundings) : options.env;
      const env = Object.fromEntries(
        Object.entries({ ...usualEnvironment(surroundings), ...more }).filter(([, value]) => value !== ''),
      );
      target = await startTarget(env, { untilHealthy: options.untilHealthy !== false });
      if (options.untilHealthy === false) {
        await waitFor(
          'its HTTP port',
          async () => (await httpRequest(target.httpPort, '/healthcheck')).status,
        );
      } else if (REFERENCE_PROGRAM === undefined) await storeToBeUp(target);
      await options.before?.(surroundings);
      client = options.client?.(target, surroundings) ?? new RawClient(`127.0.0.1:${target.grpcPort}`);
    });

    test.each(cases.map((one) => [one.name, one] as const))('%s', async (_, one) => {
      await runCase(one, { target, client, surroundings });
    });

    options.more?.(() => ({ target, ...surroundings }));

    const counted = cases.filter((one) => one.stats !== undefined);
    if (counted.length > 0) {
      test('counts nothing else, and each line of statsd is one metric', () => {
        for (const one of counted) {
          expect({ case: one.name, ...countersOf(one, surroundings) }).toEqual({
            case: one.name,
            ...wantedStats(one),
          });
        }
        expect(surroundings.statsd.malformed).toEqual([]);
      });
    }
  });
}

/** Waits for Redis: with SHADOW_MODE, weir serves before it has reached Redis, because no rule denies. */
async function storeToBeUp({ httpPort }: Target): Promise<void> {
  await waitFor('Redis to be reached', async () => {
    const { body } = await httpRequest(httpPort, '/healthcheck?detail');
    return JSON.parse(body).storeUp || undefined;
  });
}

function writePolicies(
  root: string,
  { cases, directory = 'ratelimit/config', files = {} }: GroupOptions,
): void {
  const write = (name: string, text: string): void => {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  mkdirSync(join(root, directory), { recursive: true });
  for (const one of cases) {
    const domain = domainOf(one);
    if (one.rules !== undefined) {
      write(join(directory, `${domain}.yaml`), `domain: ${domain}\ndescriptors:\n${one.rules}`);
    }
    for (const [name, text] of Object.entries(one.files ?? {})) {
      write(join(directory, name), text.replaceAll('<domain>', domain));
    }
  }
  for (const [name, text] of Object.entries(files)) write(name, text);
}

interface Running {
  readonly target: Target;
  readonly client: RawClient;
  readonly surroundings: Surroundings;
}

async function runCase(one: ReferenceCase, running: Running): Promise<void> {
  const finest = finestWindow(one);
  const { statsd, redis, perSecond } = running.surroundings;
  for (let attempt = 1; ; attempt++) {
    const begun = Math.floor(Date.now() / 1000 / finest);
    const before = new Map(Object.keys(one.counters ?? {}).map((name) => [name, statsd.counter(name)]));
    const comparisons: Comparison[] = [];
    for (const step of one.steps) comparisons.push(...(await runStep(one, step, running)));
    const crossed = Math.floor(Date.now() / 1000 / finest) !== begun;
    const right = comparisons.every(({ actual, expected }) => isEqual(actual, expected));
    if (!right && crossed && attempt < ATTEMPTS) {
      await flush(redis);
      if (perSecond !== undefined) await flush(perSecond);
      continue;
    }
    for (const [index, { actual, expected }] of comparisons.entries()) {
      expect({ step: index + 1, ...asObject(actual) }).toEqual({ step: index + 1, ...asObject(expected) });
    }
    // The counts of earlier attempts do not belong to the case.
    if (attempt === 1) await checkStatistics(one, before, running.surroundings);
    return;
  }
}

function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : { is: value };
}

function isEqual(actual: unknown, expected: unknown): boolean {
  try {
    expect(actual).toEqual(expected);
    return true;
  } catch {
    return false;
  }
}

async function runStep(one: ReferenceCase, step: Step, { target, client }: Running): Promise<Comparison[]> {
  const about = { domain: domainOf(one), resetOf: one.resetOf ?? onlyUnit(one) };
  if ('http' in step) {
    const port = step.port === 'debug' ? target.debugPort : target.httpPort;
    return [await request(port, forTarget(step), about)];
  }
  if ('health' in step) {
    const is = REFERENCE_PROGRAM === undefined ? step.is : (step.reference ?? step.is);
    return [await checkHealth(client, step.health, is)];
  }
  const wanted = answerOf(step);
  const comparisons: Comparison[] = [];
  for (let count = step.times ?? 1; count > 0; count--) {
    comparisons.push(await call(client, step, wanted, about));
  }
  return comparisons;
}

function forTarget(step: HttpStep): HttpStep {
  return REFERENCE_PROGRAM === undefined ? step : { ...step, ...step.reference };
}

function answerOf(step: CallStep): Answer {
  const get = REFERENCE_PROGRAM === undefined ? step.get : (step.reference ?? step.get);
  return Array.isArray(get) ? { statuses: get as readonly Status[] } : (get as Answer);
}

function wantedStats(one: ReferenceCase): Readonly<Record<string, number>> {
  return (REFERENCE_PROGRAM === undefined ? undefined : one.referenceStats) ?? one.stats ?? {};
}

function countersOf(one: ReferenceCase, { statsd }: Surroundings): Record<string, number> {
  return statsd.countersUnder(`${STATS}${domainOf(one)}.`);
}

/** Compares the statistics, which arrive with the next flush. */
async function checkStatistics(
  one: ReferenceCase,
  before: ReadonlyMap<string, number>,
  surroundings: Surroundings,
): Promise<void> {
  const { statsd } = surroundings;
  const read = () => ({
    ...(one.stats !== undefined && countersOf(one, surroundings)),
    ...Object.fromEntries([...before].map(([name, value]) => [name, statsd.counter(name) - value])),
  });
  const wanted = { ...wantedStats(one), ...one.counters };
  if (Object.keys(wanted).length === 0) return;
  await waitFor('the statistics', () => isEqual(read(), wanted) || undefined).catch(() => undefined);
  expect(read()).toEqual(wanted);
}

async function flush({ port }: RedisServer): Promise<void> {
  const redis = new Redis(port, '127.0.0.1');
  await redis.flushall();
  redis.disconnect();
}

/** Returns every unit in the rules, files and overrides of the case. */
function unitsOf(one: ReferenceCase): Unit[] {
  const texts = [one.rules ?? '', ...Object.values(one.files ?? {})].join('\n');
  const named = [...texts.matchAll(/unit: *["']?([a-zA-Z]+)/g)].map(([, unit]) => String(unit).toLowerCase());
  const limits = [...JSON.stringify(one.steps).matchAll(/"limit":"\d+\/([a-z]+)"/g)].map(([, unit]) => unit);
  return [...new Set([...named, ...limits])].filter((unit): unit is Unit => String(unit) in UNIT_SECONDS);
}

function onlyUnit(one: ReferenceCase): Unit | undefined {
  const units = unitsOf(one);
  return units.length === 1 ? units[0] : undefined;
}

function finestWindow(one: ReferenceCase): number {
  return Math.min(UNIT_SECONDS.day, ...unitsOf(one).map((unit) => UNIT_SECONDS[unit]));
}
