import { cpuMicros } from './cpu.js';
import { h2load, type LoadResult } from './h2load.js';
import { type BenchTarget, startTargets } from './targets.js';

/**
 * `npm run bench`: CPU microseconds per decision and latency of weir in memory and in Redis, beside an empty @grpc/grpc-js handler, all in
 * one run. The targets take turns, so that what else the machine does falls on all of them alike; each figure is the median of
 * the rounds.
 */
const HELP = `Usage: npm run bench [-- --rounds N --requests N --connections N --streams N]

Runs the load of h2load against an empty grpc-js handler, weir in memory and weir with Redis, in turns, and prints the medians.
`;

interface Options {
  rounds: number;
  requests: number;
  connections: number;
  streams: number;
}

interface Round extends LoadResult {
  readonly serverMicros: number;
  readonly redisMicros: number;
}

function readOptions(argv: readonly string[]): Options {
  const options: Options = { rounds: 5, requests: 30_000, connections: 4, streams: 16 };
  for (let index = 0; index < argv.length; index += 2) {
    const name = argv[index]?.replace(/^--/, '') as keyof Options;
    const value = Number(argv[index + 1]);
    if (!Object.hasOwn(options, name) || !Number.isSafeInteger(value) || value < 1) {
      process.stderr.write(HELP);
      process.exit(argv.includes('--help') ? 0 : 2);
    }
    options[name] = value;
  }
  return options;
}

async function round(target: BenchTarget, options: Options): Promise<Round> {
  const server = cpuMicros(target.pid);
  const redis = target.redisPid === undefined ? 0 : cpuMicros(target.redisPid);
  const load = await h2load({ ...options, port: target.port, message: target.message });
  return {
    ...load,
    serverMicros: (cpuMicros(target.pid) - server) / options.requests,
    redisMicros: target.redisPid === undefined ? 0 : (cpuMicros(target.redisPid) - redis) / options.requests,
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

function row(cells: readonly string[]): string {
  const widths = [26, 12, 10, 12, 12, 9, 9, 14];
  return cells
    .map((cell, index) => (index === 0 ? cell.padEnd(26) : cell.padStart(widths[index] ?? 10)))
    .join(' ');
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  const targets = await startTargets();
  try {
    const rounds = new Map<BenchTarget, Round[]>(targets.all.map((target) => [target, []]));
    for (const target of targets.all)
      await round(target, { ...options, requests: Math.min(10_000, options.requests) });
    for (let index = 0; index < options.rounds; index++) {
      process.stderr.write(`round ${index + 1} of ${options.rounds}\n`);
      for (const [target, results] of rounds) results.push(await round(target, options));
    }
    const { connections, streams, requests } = options;
    console.log(
      `h2load ${connections} x ${streams}, ${requests} requests, median of ${options.rounds} rounds, Node ${process.version}`,
    );
    console.log(row(['', 'server µs', 'Redis µs', 'together', '/ empty', 'p50 ms', 'p99 ms', 'decisions/s']));
    let yardstick: number | undefined;
    for (const [target, results] of rounds) {
      const server = median(results.map((one) => one.serverMicros));
      const redis = median(results.map((one) => one.redisMicros));
      yardstick ??= server;
      console.log(
        row([
          target.name,
          server.toFixed(1),
          target.redisPid === undefined ? '–' : redis.toFixed(1),
          (server + redis).toFixed(1),
          ((server + redis) / yardstick).toFixed(2),
          (median(results.map((one) => one.p50Micros)) / 1000).toFixed(2),
          (median(results.map((one) => one.p99Micros)) / 1000).toFixed(2),
          (requests / median(results.map((one) => one.seconds))).toFixed(0),
        ]),
      );
    }
  } finally {
    await targets.stop();
  }
}

void main();
