/*
 * Loading a policy, and the effect of a reload on decisions. To run it: `node
 * build/test/bench/micro/policy-load.bench.js [part of a name …]`.
 */
import { renameSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { FilePolicyProvider } from '../../../src/config/files/file-policy-provider.js';
import { readPolicies } from '../../../src/config/files/load-policies.js';
import { MinorCollector, ThreadPolicyLoader } from '../../../src/config/threads/load-thread.js';
import {
  buildBatches,
  inBatches,
  type PolicyItem,
  specItems,
} from '../../../src/config/threads/policy-transfer.js';
import { turn } from '../../../src/runtime/turns.js';
import { entries } from '../../support/policy/policies.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { type CustomCase, type Measurement, median, QUICK, runCases } from './measure.js';

const TENANTS = 1000;
const RULES_PER_TENANT = 10;
const RELOADS = QUICK ? 2 : 10;

/** Returns a policy with 10,000 rules for 1,000 tenants. */
function policyText(limit: number): string {
  const lines = ['domain: big', 'descriptors:'];
  for (let tenant = 0; tenant < TENANTS; tenant++) {
    lines.push('  - key: tenant', `    value: tenant-${tenant}`, '    descriptors:');
    for (let rule = 0; rule < RULES_PER_TENANT; rule++) {
      lines.push(
        '      - key: resource_group',
        `        value: group-${rule}`,
        '        rate_limit:',
        `          name: rule-${rule}`,
        '          unit: minute',
        `          requests_per_unit: ${limit}`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Returns a policy of another domain, in which the key `tenant` or the key `resource_group` is a secret. */
function derivingText(limit: number): string {
  const source = limit % 2 === 0 ? 'tenant' : 'resource_group';
  const derive = `derive: [{ entry: who, from: [${source}], sha256: { ${'0'.repeat(64)}: acme } }]`;
  return (
    `domain: deriving\n${derive}\ndescriptors: [{ key: who, rate_limit: { unit: minute, ` +
    'requests_per_unit: 1 } }]\n'
  );
}

/** Runs a case in a new directory. */
function inDirectory(
  run: (write: (limit: number) => void, path: string) => Promise<readonly Measurement[]>,
  changes: 'rules' | 'secrets of others' = 'rules',
): CustomCase {
  return {
    measure: async () => {
      const dir = new TempDir();
      const writeRules = (limit: number): void =>
        renameSync(dir.write('policy.tmp', policyText(limit)), dir.join('policy.yaml'));
      const writeDeriving = (limit: number): void =>
        renameSync(dir.write('deriving.tmp', derivingText(limit)), dir.join('deriving.yaml'));
      const write = changes === 'rules' ? writeRules : writeDeriving;
      writeRules(1);
      write(1);
      try {
        return await run(write, dir.path);
      } finally {
        dir.remove();
      }
    },
  };
}

/** Measures the first load of a process, as at the start of weir. */
const start: CustomCase = inDirectory(async (_write, path) => {
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const { policySet } = await new ThreadPolicyLoader([path]).load();
  const took = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  if (policySet.domains.get('big')?.rules.length !== TENANTS * RULES_PER_TENANT)
    throw new Error('the policy does not contain all rules');
  const name = 'load of 10,000 rules';
  return [
    { name, value: took, unit: 'ms' },
    { name: `${name}, CPU of all threads`, value: (user + system) / 1000, unit: 'ms' },
  ];
});

/**
 * Makes a few decisions in each turn of the event loop, and measures the longest time between turns. This is the
 * maximum delay of a decision.
 */
class DecisionLoop {
  private readonly provider: FilePolicyProvider;
  private readonly requests = Array.from({ length: 1000 }, (_, i) =>
    entries(`tenant=tenant-${i}`, `resource_group=group-${i % RULES_PER_TENANT}`),
  );
  private last = performance.now();
  private stopped = false;
  private longest = 0;

  constructor(provider: FilePolicyProvider) {
    this.provider = provider;
    this.turn(0);
  }

  stop(): void {
    this.stopped = true;
  }

  /** Returns the longest gap since the last call of this function. */
  takeLongest(): number {
    const longest = this.longest;
    this.longest = 0;
    return longest;
  }

  private turn(call: number): void {
    if (this.stopped) return;
    const now = performance.now();
    this.longest = Math.max(this.longest, now - this.last);
    this.last = now;
    const policy = this.provider.current()?.domains.get('big');
    for (let i = 0; i < 20; i++)
      policy?.match(this.requests[(call + i) % 1000] as (typeof this.requests)[number]);
    setImmediate(() => this.turn(call + 20));
  }
}

const reload = async (
  what: string,
  write: (limit: number) => void,
  path: string,
): Promise<readonly Measurement[]> => {
  const loader = new ThreadPolicyLoader([path]);
  const provider = new FilePolicyProvider([path], await loader.load(), loader);
  const deciding = new DecisionLoop(provider);
  await new Promise((resolve) => setTimeout(resolve, 500));
  deciding.takeLongest();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const gapWithoutReload = deciding.takeLongest();
  const gaps: number[] = [];
  const times: number[] = [];
  for (let limit = 2; limit < 2 + RELOADS; limit++) {
    // The new policy changes every rule.
    write(limit);
    // Exclude the time of writing the file.
    await turn();
    await turn();
    deciding.takeLongest();
    const begin = performance.now();
    const { kind } = await provider.reload('signal');
    times.push(performance.now() - begin);
    gaps.push(deciding.takeLongest());
    if (kind !== 'loaded') throw new Error(`the reload ${kind}`);
  }
  deciding.stop();
  provider.close();
  return [
    {
      name: `${what} of 10,000 rules while deciding`,
      value: median(times),
      min: Math.min(...times),
      unit: 'ms',
    },
    { name: 'longest gap between decisions, no reload', value: gapWithoutReload, unit: 'ms' },
    {
      name: `longest gap in a ${what}: median, minimum`,
      value: median(gaps),
      min: Math.min(...gaps),
      unit: 'ms',
    },
    { name: `longest gap in all ${what}s`, value: Math.max(...gaps), unit: 'ms' },
  ];
};

/**
 * Measures the CPU time in which a thread receives a policy in batches from another thread, with garbage collection.
 * CPU time does not depend on other load on the machine.
 */
const building: CustomCase = inDirectory(async (_write, path) => {
  const { specs, secretKeys } = readPolicies([path]);
  const batches = Array.from(inBatches(specItems(specs, secretKeys)), (batch) => serialize(batch));
  globalThis.gc?.();
  const rounds: { readonly longest: number; readonly all: number }[] = [];
  // As in a server, the previous policies stay in memory until the new policies are complete.
  let current: unknown;
  for (let round = 0; round < RELOADS; round++) {
    const garbage = new MinorCollector();
    const took: number[] = [];
    const received = function* (): Generator<readonly PolicyItem[]> {
      for (const bytes of batches) yield deserialize(bytes) as readonly PolicyItem[];
    };
    const work = buildBatches(received(), { compiles: true });
    for (let ended = false; !ended; ) {
      const before = process.cpuUsage();
      const step = work.next();
      await turn();
      garbage.slice();
      const { user, system } = process.cpuUsage(before);
      took.push((user + system) / 1000);
      ended = step.done === true;
      if (ended) current = step.value;
    }
    rounds.push({ longest: Math.max(...took), all: took.reduce((sum, one) => sum + one, 0) });
  }
  if (current === undefined) throw new Error('no policies were built');
  const measurement = (name: string, values: readonly number[]): Measurement => ({
    name,
    value: median(values),
    min: Math.min(...values),
    unit: 'ms',
  });
  return [
    { name: 'longest batch of the first round', value: rounds[0]?.longest ?? 0, unit: 'ms' },
    measurement(
      'longest batch',
      rounds.map(({ longest }) => longest),
    ),
    measurement(
      `all ${batches.length} batches`,
      rounds.map(({ all }) => all),
    ),
  ];
});

runCases(__filename, {
  'load of 10,000 rules': start,
  'building, batch by batch': building,
  'reload while deciding': inDirectory((write, path) => reload('reload', write, path)),
  'reload of another domain with a secret of this one': inDirectory(
    (write, path) => reload('renaming', write, path),
    'secrets of others',
  ),
});
