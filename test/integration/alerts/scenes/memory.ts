/* One weir with buckets in memory, under the influence of callers, policies and the machine. */
import { readFileSync, writeFileSync } from 'node:fs';
import { descriptor } from '../../../support/policy/decider.js';
import { waitFor } from '../../../support/process/wait-for.js';
import { type Scrape, sumOf } from '../../../support/prometheus/metrics-text.js';
import type { SnapshotPair } from '../../../support/prometheus/rule-tests.js';
import { startWeir } from '../../../support/weir/weir.js';
import { beside, changed, gone, renamed, type Scene, Watched } from './scene.js';

const POLICY = `domain: d
descriptors:
  - { key: calm, rate_limit: { token_bucket: { max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1h } } }
  - { key: few, rate_limit: { token_bucket: { max_tokens: 5, fill_interval: 1h } } }
  - { key: most, rate_limit: { token_bucket: { max_tokens: 10, fill_interval: 1h } } }
  - { key: brief, rate_limit: { token_bucket: { max_tokens: 10, tokens_per_fill: 10, fill_interval: 10s } } }
  - { key: path, value_regex: '.*a.{400}b', rate_limit: { token_bucket: { max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1h } } }
`;
const ENV = {
  BUCKET_USED_RATIO_TOP: '10',
  MEMORY_MAX_BUCKETS: '100',
  METRICS_MAX_SERIES: '20',
  LOG_LEVEL: 'debug',
};
/** Longer than a turn of the event loop is allowed to take. */
const BLOCKED_MS = 300;

const lag = ({ values }: Scrape): number => values.get('nodejs_eventloop_lag_p99_seconds') ?? Number.NaN;

export function memoryScene(): Scene {
  let weir: Watched;
  let good: SnapshotPair;
  const usualAnd = (more: () => Promise<unknown>): Promise<SnapshotPair> =>
    weir.around(async () => {
      await weir.usual();
      await more();
    });
  /** Takes a new pair in which the machine was fast enough to record the event. */
  const quick = (): Promise<SnapshotPair> =>
    waitFor('a moment in which the machine has time', async () => {
      const pair = await weir.around(() => weir.usual());
      return lag(pair[1]['weir-0'] as Scrape) < 0.04 ? pair : undefined;
    });
  const policyPath = (): string => weir.server.policyPath as string;
  /** Writes the policy, and waits until weir has loaded or rejected it. */
  const writePolicy = async (text: string, works: boolean): Promise<void> => {
    writeFileSync(policyPath(), text);
    await waitFor('the reload', async () => {
      const { 'weir-0': seen } = await weir.shot();
      return seen?.values.get('weir_config_last_reload_successful') === (works ? 1 : 0);
    });
  };
  return {
    name: 'buckets in memory',
    async open() {
      // The last scenario but one needs a weir whose output is not read.
      weir = new Watched(await startWeir({ policy: POLICY, env: ENV, readsOutput: false }));
      good = await usualAnd(async () => {});
    },
    scenarios: [
      {
        name: 'callers send requests without a domain',
        fires: ['WeirBadRequests'],
        observe: async () => ({ good, bad: await usualAnd(() => weir.ask(10, 'calm=x', '')) }),
      },
      {
        name: 'requests for a domain that no policy has',
        fires: ['WeirUnknownDomain'],
        observe: async () => ({ good, bad: await usualAnd(() => weir.ask(10, 'calm=x', 'shopp')) }),
      },
      {
        name: 'descriptors that match no rule',
        fires: ['WeirUnmatchedRequests'],
        observe: async () => ({ good, bad: await usualAnd(() => weir.ask(10, 'clam=x')) }),
      },
      {
        name: 'values that are too long for regular expressions',
        fires: ['WeirRequestsGivenUp'],
        observe: async () => ({ good, bad: await usualAnd(() => weir.ask(2, `path=${'x'.repeat(5000)}`)) }),
      },
      {
        name: 'more callers than memory has buckets for',
        fires: ['WeirMemoryEvictions'],
        async observe() {
          const evicts = ([before, after]: SnapshotPair): boolean => {
            const [was, is] = [before, after].map((shot) =>
              sumOf(shot['weir-0'] as Scrape, 'weir_memory_evictions_total'),
            );
            return was !== is;
          };
          // Buckets that are full again are not counted, so the calls must take less than a second.
          const bad = await waitFor('evictions', async () => {
            const pair = await usualAnd(async () => {
              for (let caller = 0; caller < 150; caller++) await weir.ask(1, `brief=${caller}`);
            });
            return evicts(pair) ? pair : undefined;
          });
          // These buckets are full a second later, so that they can be evicted.
          await waitFor('memory for other buckets', async () =>
            evicts(await usualAnd(async () => {})) ? undefined : true,
          );
          return { good, bad };
        },
      },
      {
        name: 'an event loop that is held up',
        fires: ['WeirEventLoopBlocked'],
        async observe() {
          const before = await quick();
          const bad = await waitFor('a late turn', async () => {
            const pair = await weir.around(async () => {
              weir.server.process.signal('SIGSTOP');
              await new Promise((resolve) => setTimeout(resolve, BLOCKED_MS));
              weir.server.process.signal('SIGCONT');
            });
            return lag(pair[1]['weir-0'] as Scrape) > 0.05 ? pair : undefined;
          });
          return { good: before, bad };
        },
      },
      {
        name: 'a policy that is bad',
        fires: ['WeirDomainKept', 'WeirPolicyReloadFailed'],
        async observe() {
          const text = readFileSync(policyPath(), 'utf8');
          await writePolicy(`${text}descripters: []\n`, false);
          const bad = await usualAnd(async () => {});
          await writePolicy(text, true);
          return { good, bad };
        },
      },
      {
        name: 'a caller that has used nine of ten tokens',
        fires: ['WeirBucketNearlyUsed'],
        async observe() {
          await weir.ask(9, 'most=acme');
          return {
            good,
            bad: await waitFor('the bucket to be shown', async () => {
              const pair = await usualAnd(async () => {});
              return sumOf(pair[1]['weir-0'] as Scrape, 'weir_bucket_used_ratio', 'most=acme') > 0.8
                ? pair
                : undefined;
            }),
          };
        },
      },
      {
        name: 'a rule that denies most of a sudden',
        fires: ['WeirBucketNearlyUsed', 'WeirDenialsRising'],
        observe: async () => ({ good, bad: await usualAnd(() => weir.ask(200, 'few=acme')) }),
      },
      {
        name: 'more domains than METRICS_MAX_SERIES',
        fires: ['WeirBucketNearlyUsed', 'WeirSeriesLimitReached', 'WeirUnknownDomain'],
        observe: async () => ({
          good,
          bad: await usualAnd(async () => {
            for (let at = 0; at < 40; at++) await weir.ask(1, 'calm=x', `made-up-${at}`);
          }),
        }),
      },
      {
        name: 'a state that does not hold',
        fires: ['WeirBrokenInvariants'],
        // An invariant cannot be broken on purpose: the series comes from a real weir, and its value is invented.
        observe: async () => ({ good, bad: changed(good, 'weir_broken_invariants_total', 1), once: true }),
      },
      {
        name: 'a log without a reader',
        fires: [
          ...[
            'WeirBucketNearlyUsed',
            'WeirLogLinesDropped',
            'WeirSeriesLimitReached',
            'WeirUnmatchedRequests',
          ],
        ],
        async observe() {
          const entries = Array.from({ length: 40 }, (_, at) => `key-${at}=${'v'.repeat(1000)}`);
          const dropped = async () =>
            sumOf((await weir.shot())['weir-0'] as Scrape, 'weir_log_lines_dropped_total');
          const flood = () =>
            Promise.all(Array.from({ length: 100 }, () => weir.client.ask('d', [descriptor(entries)])));
          await waitFor('the first loss', async () => {
            await flood();
            return (await dropped()) > 0 || undefined;
          });
          return { good, bad: await usualAnd(flood) };
        },
      },
      {
        name: 'one of two servers is gone',
        fires: ['WeirDown'],
        async observe() {
          await weir.server.process.stop('SIGKILL');
          const other = renamed(good, 'weir-1');
          return { good: beside(good, other), bad: beside([await weir.shot(), await weir.shot()], other) };
        },
      },
      {
        name: 'the only server is gone',
        fires: ['WeirAbsent', 'WeirDown'],
        observe: async () => ({ good, bad: gone() }),
      },
    ],
  };
}
