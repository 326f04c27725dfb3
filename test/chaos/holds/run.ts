/* `npm run holds`: sends concurrent requests to a limit of ten for a minute, and checks how many are in flight. */
import { parseArgs } from 'node:util';
import { print, randomSeed, runAndReport } from '../long-run.js';
import { holdLoad } from './hold-load.js';

const HELP = `Usage: npm run holds [-- options]

Sends slow requests of 200 clients, some of which leave early, through two Envoys and three weir servers with one Redis
to a limit of 10 concurrent requests. Fails if more than 10 are in flight, if fewer are for more than a tenth of the
time, or if any is in flight a second after the last client left. See docs/internals/holds.md.

  --minutes N   duration (1)
  --kills       kills a weir, an Envoy and Redis, and expects their slots to be free when the holds have expired
  --seed S      repeats the choices of an earlier run (random; printed at the start)
  --help        prints this text
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '1' },
      seed: { type: 'string', default: String(randomSeed()) },
      kills: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const minutes = Number(values.minutes);
  const seed = Number(values.seed);
  const { kills } = values;
  if (values.help) {
    print(HELP);
    return;
  }
  if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
    print('--minutes must be a positive number, and --seed must be a whole number. See --help.');
    process.exitCode = 2;
    return;
  }
  print(`seed ${seed}`);
  const repeat = `npm run holds -- --minutes ${minutes} --seed ${seed}${kills ? ' --kills' : ''}`;
  await runAndReport(['redis-server', 'envoy'], repeat, () =>
    holdLoad({ ms: minutes * 60_000, seed, kills, print }),
  );
}

void main();
