/*
 * Loading a policy, and what decisions notice of a reload. `node build/test/bench/micro/policy-load.bench.js [part of a
 * name …]`
 */
import { renameSync } from 'node:fs';
import { FilePolicyProvider } from '../../../src/config/files/file-policy-provider.js';
import { readPolicies } from '../../../src/config/files/load-policies.js';
import { type LoadItem, LoadReceiver, loadItems } from '../../../src/config/threads/load-transfer.js';
import { MinorCollector } from '../../../src/config/threads/minor-collector.js';
import { ThreadPolicyLoader } from '../../../src/config/threads/policy-loader.js';
import { cutSlices, openSlice } from '../../../src/config/threads/slices.js';
import { turn } from '../../../src/runtime/turns.js';
import { entries } from '../../support/policy/policies.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { type Figure, type FiguresCase, median, QUICK, runCases } from './measure.js';

const TENANTS = 1000;
const RULES_PER_TENANT = 10;
const RELOADS = QUICK ? 2 : 10;

/** 10,000 rules below 1,000 tenants. `quoted`: with an escape, which only the parser of all YAML reads. */
function policyText(limit: number, quoted: boolean): string {
  const lines = ['domain: big', 'descriptors:'];
  for (let tenant = 0; tenant < TENANTS; tenant++) {
    lines.push('  - key: tenant', `    value: tenant-${tenant}`, '    descriptors:');
    for (let rule = 0; rule < RULES_PER_TENANT; rule++) {
      lines.push(
        '      - key: resource_group',
        `        value: ${quoted ? `"\\x67roup-${rule}"` : `group-${rule}`}`,
        '        rate_limit:',
        `          name: rule-${rule}`,
        '          unit: minute',
        `          requests_per_unit: ${limit}`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Another domain, with a secret that one of two policies has: the key of all tenants, or that of all groups. */
function derivingText(limit: number): string {
  const source = limit % 2 === 0 ? 'tenant' : 'resource_group';
  const derive = `derive: [{ entry: who, from: [${source}], sha256: { ${'0'.repeat(64)}: acme } }]`;
  return (
    `domain: deriving\n${derive}\ndescriptors: [{ key: who, rate_limit: { unit: minute, ` +
    'requests_per_unit: 1 } }]\n'
  );
}

/** Runs a case in a directory of its own. */
function inDirectory(
  run: (write: (limit: number) => void, path: string) => Promise<readonly Figure[]>,
  { quoted = false, changes = 'rules' }: { quoted?: boolean; changes?: 'rules' | 'secrets of others' } = {},
): FiguresCase {
  return {
    figures: async () => {
      const dir = new TempDir();
      const writeRules = (limit: number): void =>
        renameSync(dir.write('policy.tmp', policyText(limit, quoted)), dir.join('policy.yaml'));
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

/** The first load of a process: cold code, as at a start. */
const start = (quoted: boolean): FiguresCase =>
  inDirectory(
    async (_write, path) => {
      const cpu = process.cpuUsage();
      const begin = performance.now();
      const { policySet } = await new ThreadPolicyLoader([path]).load();
      const took = performance.now() - begin;
      const { user, system } = process.cpuUsage(cpu);
      if (policySet.domains.get('big')?.rules.length !== TENANTS * RULES_PER_TENANT)
        throw new Error('not all rules');
      const name = `load of 10,000 rules${quoted ? ' with escapes' : ''}`;
      return [
        { name, value: took, unit: 'ms' },
        { name: `${name}, CPU of all threads`, value: (user + system) / 1000, unit: 'ms' },
      ];
    },
    { quoted },
  );

/**
 * Decides without a pause, a few at each turn of the event loop; the longest time between turns is what a decision may
 * have to wait.
 */
class Deciding {
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

  /** The longest gap since the last call. */
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
): Promise<readonly Figure[]> => {
  const loader = new ThreadPolicyLoader([path]);
  const provider = new FilePolicyProvider([path], await loader.load(), loader, { watch: false });
  const deciding = new Deciding(provider);
  await new Promise((resolve) => setTimeout(resolve, 500));
  deciding.takeLongest();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const quiet = deciding.takeLongest();
  const gaps: number[] = [];
  const times: number[] = [];
  for (let limit = 2; limit < 2 + RELOADS; limit++) {
    // Each rule is another one.
    write(limit);
    // What writing it held up is none of the server's.
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
      least: Math.min(...times),
      unit: 'ms',
    },
    { name: 'longest gap between decisions, no reload', value: quiet, unit: 'ms' },
    {
      name: `longest gap in a ${what}: median, least`,
      value: median(gaps),
      least: Math.min(...gaps),
      unit: 'ms',
    },
    { name: `longest gap in all ${what}s`, value: Math.max(...gaps), unit: 'ms' },
  ];
};

/**
 * What one thread pays for the slices that another one gives it: the CPU time of a turn of the event loop, garbage
 * collection included, which a busy machine does not stretch.
 */
const building: FiguresCase = inDirectory(async (_write, path) => {
  const slices = [...cutSlices(loadItems(readPolicies([path])))];
  globalThis.gc?.();
  const rounds: { readonly longest: number; readonly all: number }[] = [];
  // As in a server, the policies of the round before are in force until those of this one are.
  let inForce: unknown;
  for (let round = 0; round < RELOADS; round++) {
    const receiver = new LoadReceiver(undefined);
    const garbage = new MinorCollector();
    const took: number[] = [];
    for (const slice of slices) {
      const before = process.cpuUsage();
      for (const item of openSlice<LoadItem>(slice)) receiver.add(item);
      await turn();
      garbage.slice();
      const { user, system } = process.cpuUsage(before);
      took.push((user + system) / 1000);
    }
    inForce = receiver.finish();
    rounds.push({ longest: Math.max(...took), all: took.reduce((sum, one) => sum + one, 0) });
  }
  if (inForce === undefined) throw new Error('nothing was built');
  const figure = (name: string, values: readonly number[]): Figure => ({
    name,
    value: median(values),
    least: Math.min(...values),
    unit: 'ms',
  });
  return [
    { name: 'longest turn, code cold', value: rounds[0]?.longest ?? 0, unit: 'ms' },
    figure(
      'longest slice',
      rounds.map(({ longest }) => longest),
    ),
    figure(
      `all ${slices.length} slices`,
      rounds.map(({ all }) => all),
    ),
  ];
});

runCases(__filename, {
  'load of 10,000 rules': start(false),
  'load with escapes': start(true),
  'building, slice by slice': building,
  'reload while deciding': inDirectory((write, path) => reload('reload', write, path)),
  'reload of another domain with a secret of this one': inDirectory(
    (write, path) => reload('renaming', write, path),
    { changes: 'secrets of others' },
  ),
});
