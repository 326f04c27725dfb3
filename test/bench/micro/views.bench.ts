/*
 * Views at 10,000 rules and 100,000 series: CPU time of a rendering, and its longest step, which decisions wait for.
 * The longest of a case holds garbage collections; the 99.9th percentile is the view's own. `node
 * build/test/bench/micro/views.bench.js [part of a name …]`
 */
import { readFileSync } from 'node:fs';
import { dump } from '../../../src/config/show/dump.js';
import { dumpJson } from '../../../src/config/show/dump-json.js';
import { dumpTree } from '../../../src/config/show/dump-tree.js';
import { TextView } from '../../../src/http/views/text-view.js';
import { ViewSlices, type ViewSteps } from '../../../src/http/views/view-slices.js';
import type { TakeItem, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import type { PolicySet } from '../../../src/policy/policy-set.js';
import { statFamilies, statsText } from '../../../src/server/metrics/stats-text.js';
import { defaultMapping } from '../../../src/telemetry/mapping/default-mapping.js';
import { MappedMetrics } from '../../../src/telemetry/mapping/mapped-metrics.js';
import { Mapper } from '../../../src/telemetry/mapping/mapper.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { policyOf } from '../../support/policy/policies.js';
import { type Figure, type FiguresCase, median, QUICK, runCases } from './measure.js';

const RULES = 10_000;
const SERIES = 100_000;
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
  const memoryStats = () => ({ size: 0, bytes: 0, evictions: 0 });
  const counted = new Metrics({ maxSeries: SERIES, version: '1', memoryStats });
  for (let rule = 0; rule < SERIES; rule++) {
    counted.decided('big', `k=value-${rule}`, rule % 2 === 0, false);
    counted.reference.counted(`big.k_value-${rule}`, true, TAKE, OK, false);
  }
  const { reference: stats } = counted;
  const mapper = new Mapper(defaultMapping(false));
  const mapped = new MappedMetrics({ stats, mapper, labels: [], quantiles: true, now: () => 0 });
  counted.registry.addSource(() => mapped.families());
  return counted;
}

/** CPU time of the thread that decides: unlike the clock it does not see what else the machine does. */
function threadMillis(): number {
  const [nanos = ''] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ');
  return Number(nanos) / 1e6;
}

/** Renders some times, with the CPU time of each step that others have to wait for. */
function rendered(name: string, create: () => () => ViewSteps<string, void>): FiguresCase {
  return {
    figures: async (): Promise<readonly Figure[]> => {
      const steps: number[] = [];
      let begun = 0;
      const slices = new ViewSlices({
        nextTurn: (callback) => {
          if (begun > 0) steps.push(threadMillis() - begun);
          setImmediate(() => {
            begun = threadMillis();
            callback();
          });
        },
      });
      const view = new TextView(slices, create());
      await view.text();
      steps.length = 0;
      const millis: number[] = [];
      let bytes = 0;
      for (let round = 0; round < RENDERINGS; round++) {
        begun = 0;
        const before = process.cpuUsage();
        ({ bytes } = await view.text());
        const { user, system } = process.cpuUsage(before);
        millis.push((user + system) / 1000);
      }
      steps.sort((one, other) => one - other);
      const step = (share: number): number => steps[Math.floor((steps.length - 1) * share)] ?? 0;
      return [
        { name: `${name}, CPU`, value: median(millis), least: Math.min(...millis), unit: 'ms' },
        { name: `${name}, 99.9 of 100 steps within`, value: step(0.999), unit: 'ms' },
        { name: `${name}, longest step`, value: step(1), unit: 'ms' },
        { name: `${name}, text`, value: bytes, unit: 'bytes' },
      ];
    },
  };
}

runCases(__filename, {
  '/metrics': rendered('/metrics, 100,000 series', () => {
    const { registry } = metrics();
    return () => registry.text();
  }),
  '/stats': rendered('/stats, 100,000 series', () => {
    const { reference } = metrics();
    return () => statsText(statFamilies(reference));
  }),
  '/rlconfig': rendered('/rlconfig, 10,000 rules', () => {
    const set = policies();
    return () => dump(set);
  }),
  '/rlconfig?format=tree': rendered('/rlconfig?format=tree, 10,000 rules', () => {
    const set = policies();
    return () => dumpTree(set, 0);
  }),
  '/rlconfig?format=json': rendered('/rlconfig?format=json, 10,000 rules', () => {
    const set = policies();
    const status = { domain: 'big', state: 'ok', files: ['big.yaml'] } as const;
    return () => dumpJson(set, [status], [], 0);
  }),
});
