/* `npm run soak`: runs weir under load for minutes, with a Redis fault every ten seconds. */
import { parseArgs } from 'node:util';
import { print, randomSeed, runAndReport } from '../long-run.js';
import { soak } from './soak.js';

const HELP = `Usage: npm run soak [-- options]

Runs weir at half of its maximum load, with a Redis fault every ten seconds. Fails if memory or the number of open files
grows, if the event loop is delayed, or if a call fails or is not answered. See docs/internals/testing.md.

  --minutes N   duration (10)
  --seed S      repeats the faults of an earlier run (random; printed at the start)
  --rate N      calls per second (half of the maximum, which is measured first)
  --help        prints this text
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(randomSeed()) },
      rate: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const minutes = Number(values.minutes);
  const seed = Number(values.seed);
  const rate = values.rate === undefined ? undefined : Number(values.rate);
  if (values.help) {
    print(HELP);
    return;
  }
  if (!(minutes > 0) || !Number.isSafeInteger(seed) || (rate !== undefined && !(rate > 0))) {
    print('--minutes and --rate must be positive numbers, and --seed must be a whole number. See --help.');
    process.exitCode = 2;
    return;
  }
  const repeat = `npm run soak -- --minutes ${minutes} --seed ${seed}`;
  await runAndReport(['redis-server'], repeat, () =>
    soak({ ms: minutes * 60_000, seed, ...(rate !== undefined && { rate }), print }),
  );
}

void main();
