/* `npm run soak`: a weir under load for minutes, with a fault of Redis every ten seconds. */
import { parseArgs } from 'node:util';
import { stopAllProcesses } from '../../support/process/processes.js';
import { fetchTools } from '../../support/process/tools.js';
import { soak } from './soak.js';

const HELP = `npm run soak -- [options]

A weir under half of the load that it can bear, with a fault of Redis every ten seconds; fails when memory, open files or
the delay of the event loop grow, or a call is not answered (docs/internals/testing.md).

  --minutes N   how long: 10
  --seed S      the same faults in the same order: one that is chosen and printed
  --rate N      calls a second, in place of half of what is measured first
  --help        this text
`;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
      rate: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const minutes = Number(values.minutes);
  const seed = Number(values.seed);
  const rate = values.rate === undefined ? undefined : Number(values.rate);
  if (values.help) {
    say(HELP);
    return;
  }
  if (!(minutes > 0) || !Number.isSafeInteger(seed) || (rate !== undefined && !(rate > 0))) {
    say('--minutes and --rate want positive numbers, --seed a whole one; --help lists the options');
    process.exitCode = 2;
    return;
  }
  fetchTools(['redis-server']);
  try {
    const wrongs = await soak({ ms: minutes * 60_000, seed, ...(rate !== undefined && { rate }), say });
    if (wrongs.length === 0) return;
    say(`FAILED: ${wrongs.join('; ')}\nagain: npm run soak -- --minutes ${minutes} --seed ${seed}`);
    process.exitCode = 1;
  } finally {
    await stopAllProcesses();
  }
}

void main();
