/* One weir with holds in memory, whose requests end in different ways. */
import { descriptor } from '../../../support/policy/decider.js';
import type { SnapshotPair } from '../../../support/prometheus/rule-tests.js';
import { startWeir } from '../../../support/weir/weir.js';
import { CALM, type Scene, Watched } from './scene.js';

const POLICY = `domain: d
${CALM}  - { key: stream, rate_limit: { concurrency: { max: 1000000, expires_after: 1m } } }
  - key: llm
    rate_limit:
      token_bucket: { max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1h }
      hold: { amount: 10, expires_after: 10m }
`;
/** A quarter of this memory is for holds: about 3,900 slots. */
const ENV = { MEMORY_MAX_BYTES: '1000000' };
const REQUESTS = 20;

export function holdsScene(): Scene {
  let weir: Watched;
  let good: SnapshotPair;
  /** Starts a request, and returns its hold token. */
  const start = async (): Promise<string> => {
    const { response } = await weir.client.ask('d', [descriptor(['llm=acme'])]);
    return String(response?.dynamicMetadata?.['hold']);
  };
  const end = (token: string, used: number) =>
    weir.client.ask('d', [descriptor([`hold=${token}`], { hitsAddend: used })]);
  const usualAnd = (used: number, more: () => Promise<unknown>): Promise<SnapshotPair> =>
    weir.around(async () => {
      await weir.usual();
      for (let request = 0; request < REQUESTS; request++) await end(await start(), used);
      await more();
    });
  return {
    name: 'holds in memory',
    async open() {
      weir = new Watched(await startWeir({ policy: POLICY, env: ENV }));
      good = await usualAnd(8, async () => {});
    },
    scenarios: [
      {
        name: 'requests whose ends get lost',
        fires: ['WeirHoldsNotSettled'],
        observe: async () => ({
          good,
          bad: await usualAnd(8, async () => {
            for (let request = 0; request < REQUESTS; request++) await start();
          }),
        }),
      },
      {
        name: 'entries that are not hold tokens',
        fires: ['WeirHoldTokensUnmatched'],
        observe: async () => ({
          good,
          bad: await usualAnd(8, async () => {
            for (let request = 0; request < REQUESTS; request++) await end('made-up', 8);
          }),
        }),
      },
      {
        name: 'requests that use twice their estimate',
        fires: ['WeirHoldOvershoot'],
        observe: async () => ({ good, bad: await usualAnd(20, async () => {}) }),
      },
      {
        name: 'more requests in flight than memory has space for',
        fires: ['WeirHoldsNotSettled', 'WeirMemoryHoldsRefused'],
        observe: async () => ({
          good,
          bad: await usualAnd(8, async () => {
            const wide = descriptor(['stream=acme'], { hitsAddend: 1000 });
            for (let request = 0; request < 5; request++) await weir.client.ask('d', [wide]);
          }),
        }),
      },
    ],
  };
}
