/*
 * Views with 10,000 rules: the CPU time of rendering a view, for which decisions wait. To run it:
 * `node build/test/bench/micro/views.bench.js [part of a name …]`.
 */
import { dump } from '../../../src/config/show/dump.js';
import { dumpJson } from '../../../src/config/show/dump-json.js';
import { dumpTree } from '../../../src/config/show/dump-tree.js';
import type { TakeItem, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import type { PolicySet } from '../../../src/policy/policy-set.js';
import { statFamilies, statsText } from '../../../src/server/metrics/stats-text.js';
import { defaultMapping } from '../../../src/telemetry/mapping/default-mapping.js';
import { MappedMetrics } from '../../../src/telemetry/mapping/mapped-metrics.js';
import { Mapper } from '../../../src/telemetry/mapping/mapper.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { policyOf } from '../../support/policy/policies.js';
import { type CustomCase, type Measurement, median, QUICK, runCases } from './measure.js';

const RULES = 10_000;
const RENDERINGS = QUICK ? 2 : 9;

const TAKE: TakeItem = {
  key: 'k',
  tagLength: 1,
  rate: windowRate('minute', 10),
  hits: 2,
  refund: false,
  enforcement: 'enforce',
};
const OK: TakeOutcome = { limited: false, remaining: 8, waitMicros: 1, used: 2, forgiven: 0, cached: false };

function policies(): PolicySet {
  const lines = ['domain: big', 'descriptors:'];
  for (let rule = 0; rule < RULES; rule++) {
    lines.push(`  - { key: k, value: value-${rule}, rate_limit: { unit: minute, requests_per_unit: 5 } }`);
  }
  return { version: 'v', domains: new Map([['big', policyOf(`${lines.join('\n')}\n`)]]) };
}

function metrics(): Metrics {
  const memoryStats = () => ({ size: 0, bytes: 0, evictions: 0, holdCount: 0, refusedHolds: 0 });
  const counted = new Metrics({ maxSeries: RULES, version: '1', memoryStats });
  for (let rule = 0; rule < RULES; rule++) {
    counted.decided('big', `k=value-${rule}`, rule % 2 === 0, false);
    counted.reference.counted(`big.k_value-${rule}`, true, TAKE, OK, false);
  }
  const { reference: stats } = counted;
  const mapper = new Mapper(defaultMapping(false));
  const mapped = new MappedMetrics({ stats, mapper, labels: [], quantiles: true, now: () => 0 });
  counted.registry.addSource(() => mapped.families());
  return counted;
}

/** Renders a view several times. */
function rendering(name: string, create: () => () => string | Buffer | Promise<Buffer>): CustomCase {
  return {
    measure: async (): Promise<readonly Measurement[]> => {
      const render = create();
      await render();
      const millis: number[] = [];
      let bytes = 0;
      for (let round = 0; round < RENDERINGS; round++) {
        const before = process.cpuUsage();
        bytes = Buffer.from(await render()).length;
        const { user, system } = process.cpuUsage(before);
        millis.push((user + system) / 1000);
      }
      return [
        { name: `${name}, CPU`, value: median(millis), min: Math.min(...millis), unit: 'ms' },
        { name: `${name}, size of the text`, value: bytes, unit: 'bytes' },
      ];
    },
  };
}

runCases(__filename, {
  '/metrics': rendering('/metrics, 10,000 rules', () => {
    const { registry } = metrics();
    return () => registry.text();
  }),
  '/stats': rendering('/stats, 10,000 rules', () => {
    const { reference } = metrics();
    return () => statsText(statFamilies(reference));
  }),
  '/rlconfig': rendering('/rlconfig, 10,000 rules', () => {
    const set = policies();
    return () => dump(set);
  }),
  '/rlconfig?format=tree': rendering('/rlconfig?format=tree, 10,000 rules', () => {
    const set = policies();
    return () => dumpTree(set, 0);
  }),
  '/rlconfig?format=json': rendering('/rlconfig?format=json, 10,000 rules', () => {
    const set = policies();
    const status = { domain: 'big', state: 'ok', files: ['big.yaml'] } as const;
    return () => JSON.stringify(dumpJson(set, [status], [], 0), null, 2);
  }),
});
