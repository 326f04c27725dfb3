/* Produces the texts of the golden files from the inputs in cases.ts. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { RequestDecoder } from '../../../src/codec/decode-request.js';
import { DEFAULT_BOUNDS } from '../../../src/codec/messages.js';
import { type LoadedPolicies, loadPolicies } from '../../../src/config/files/load-policies.js';
import { dump, dumpJson } from '../../../src/config/show/dump.js';
import { dumpTree } from '../../../src/config/show/dump-tree.js';
import type { BucketStore } from '../../../src/limiter/bucket-store.js';
import { Refusal } from '../../../src/service/refusal.js';
import { ShouldRateLimit } from '../../../src/service/should-rate-limit.js';
import { FakeClock } from '../clock/fake-clock.js';
import { encodeResponse } from '../codec/wire-codec.js';
import { RedisBench } from '../limiter/test-stores.js';
import { Decider } from '../policy/decider.js';
import { closeAll } from '../process/close-later.js';
import { TempDir } from '../process/temp-dir.js';
import { repositoryRoot } from '../process/tools.js';
import { runCommands } from '../weir/commands.js';
import {
  EARLIER_TEXTS,
  EXPLAINED_AS_JSON,
  type GoldenRequest,
  POLICIES,
  REDIS_REQUESTS,
  WIRE_CASES,
  type WireCase,
} from './cases.js';
import { specLines } from './specs.js';

const FOLDER = join(repositoryRoot, 'test/contract/golden');
const EVERY_KEY = 'policies/every-key.yaml';
const WALL_MICROS = new FakeClock().wall;

const inFolder = (name: string): string => join(FOLDER, name);
export const everyKeyPolicy = (): string => readFileSync(inFolder(EVERY_KEY), 'utf8');
export const goldenText = (name: GoldenName): string => readFileSync(inFolder(name), 'utf8');

let loaded: LoadedPolicies | undefined;
const policies = (): LoadedPolicies => {
  loaded ??= loadPolicies([inFolder('policies')]);
  return loaded;
};

/** A service on the policies of the folder, with a fixed clock. Buckets are in memory unless `store` is given. */
class GoldenService {
  readonly #decider: Decider;
  readonly #service: ShouldRateLimit;

  constructor({ answers = {} }: Partial<WireCase>, store?: BucketStore) {
    this.#decider = new Decider('domain: unused\n', { answers, ...(store !== undefined && { store }) });
    const { options } = this.#decider;
    const { policySet } = policies();
    this.#service = new ShouldRateLimit({
      ...options,
      decoder: new RequestDecoder({ ...DEFAULT_BOUNDS, maxDescriptors: 4 }),
      policies: { current: () => policySet },
      random: () => 0.4,
    });
  }

  /** Returns the bytes of the answer in hex, or the error. */
  async ask(request: GoldenRequest): Promise<string> {
    const { codec } = this.#decider;
    const message = typeof request === 'string' ? Buffer.from(request, 'hex') : codec.encodeRequest(request);
    const answer = await this.#service.handle(message);
    if (answer instanceof Refusal) return `${answer.kind}: ${answer.message}`;
    return Buffer.from(encodeResponse(answer)).toString('hex');
  }
}

async function wire(): Promise<string> {
  let text = '';
  for (const one of WIRE_CASES) {
    const service = new GoldenService(one);
    text += `# ${one.name}\n`;
    for (const request of one.requests) text += `${await service.ask(request)}\n`;
  }
  return text;
}

/** Returns every key with its type and value. The random identifiers of announcements are replaced. */
async function contents(client: Redis): Promise<string> {
  let text = '';
  // The key of the probe expires after a few seconds.
  const keys = (await client.keys('*')).filter((key) => !key.endsWith('}probe'));
  for (const key of keys.sort()) {
    const type = await client.type(key);
    text += `${key} ${type}`;
    if (type !== 'zset') {
      text += ` ${await client.get(key)}\n`;
      continue;
    }
    const parts = await client.zrange(key, 0, '-1', 'WITHSCORES');
    const members = parts.flatMap((part, i) => (i % 2 === 0 ? [`${parts[i + 1]} ${part}`] : []));
    text += `\n${members
      .map((member) => `  ${member}\n`)
      .sort()
      .join('')}`;
  }
  return text;
}

/** Returns the contents of a Redis after all takes and changes, on a test's clock. */
async function redis(): Promise<string> {
  const bench = new RedisBench('redis-server');
  await bench.start();
  try {
    const store = await bench.open();
    const service = new GoldenService(
      {},
      {
        take: (takes) => store.take(takes, Infinity),
        close: () => store.close(),
      },
    );
    for (const request of REDIS_REQUESTS) await service.ask(request);
    return await contents(bench.redis);
  } finally {
    await closeAll();
  }
}

/** Returns the output of commands at the time of the fake clock, with paths of the repository. */
async function commands(): Promise<string> {
  const folder = new TempDir();
  try {
    let before = everyKeyPolicy();
    for (const [text, earlier] of EARLIER_TEXTS) {
      if (!before.includes(text)) throw new Error(`every-key.yaml does not hold ${JSON.stringify(text)}`);
      before = before.replace(text, earlier);
    }
    const old = folder.write('every-key.yaml', before);
    for (const file of ['keys.yaml', 'customers.csv']) {
      folder.write(file, readFileSync(inFolder(`policies/${file}`), 'utf8'));
    }
    const paths = Object.keys(POLICIES);
    const now = 'test/contract/golden/policies/every-key.yaml';
    const lines = [
      ...[...paths, 'test/contract/golden/policies'].map((path) => ['check-config', path]),
      ...Object.entries(POLICIES).flatMap(([path, lists]) => lists.map((list) => ['explain', path, ...list])),
      ...EXPLAINED_AS_JSON.map((list) => ['explain', now, ...list, '--json']),
      ['diff', old, now],
      ['diff', now, old],
      ['diff', paths[0]!, paths[2]!],
      ['diff', paths[0]!, paths[2]!, '--json'],
    ];
    const nowMs = WALL_MICROS / 1000;
    const results = await runCommands(lines.map((args) => ({ args, folder: repositoryRoot, nowMs })));
    const shown = results.map(
      ({ code, printed }, i) => `# weir ${lines[i]!.join(' ')}\n${printed}# exit code ${code}\n\n`,
    );
    return shown.join('').replaceAll(`${folder.path}/`, 'earlier/');
  } finally {
    folder.remove();
  }
}

function keysOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, below]) => [key, ...keysOf(below)]);
}

/** Returns the policies as JSON, without rules whose keys were all shown before; the other forms show their values. */
function shortJson(dumped: object): string {
  const shown = JSON.parse(JSON.stringify(dumped)) as {
    readonly domains: { readonly policy: { rules: object[] } }[];
  };
  const known = new Set<string>();
  for (const { policy } of shown.domains) {
    policy.rules = policy.rules.filter((rule) => {
      const keys = keysOf(rule);
      const isNew = keys.some((key) => !known.has(key));
      for (const key of keys) known.add(key);
      return isNew;
    });
  }
  return JSON.stringify(shown, undefined, 2);
}

/** Returns `/rlconfig` in its three forms. */
async function rlconfig(): Promise<string> {
  const { policySet, domains, errors } = policies();
  const forms = [
    dump(policySet),
    dumpTree(policySet, WALL_MICROS),
    shortJson(dumpJson(policySet, domains, errors, WALL_MICROS)),
  ];
  return `${forms.join('\n')}\n`.replaceAll(`${repositoryRoot}/`, '');
}

const SUBJECTS = {
  'wire.txt': wire,
  'redis.txt': redis,
  'commands.txt': commands,
  'rlconfig.txt': rlconfig,
  'specs.txt': async () => specLines(),
} as const;

export type GoldenName = keyof typeof SUBJECTS;
export const GOLDEN_NAMES = Object.keys(SUBJECTS) as readonly GoldenName[];

/** Returns the expected content of a golden file. */
export const makeGolden = (name: GoldenName): Promise<string> => SUBJECTS[name]();

export async function writeGolden(): Promise<void> {
  for (const name of GOLDEN_NAMES) writeFileSync(inFolder(name), await makeGolden(name));
}
