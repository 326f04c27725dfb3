/*
 * A line of an access log in `weir replay`: reading it from a file, and replaying it. To run it: `node
 * build/test/bench/micro/replay.bench.js`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { replayedServer } from '../../../src/cli/replay.js';
import { loadPolicies } from '../../../src/config/files/load-policies.js';
import { readLines } from '../../../src/replay/log-lines.js';
import { LogFacts, mappedReader } from '../../../src/replay/log-request.js';
import { Replay } from '../../../src/replay/replay.js';
import { type LogMap, readReplayMap } from '../../../src/replay/replay-map.js';
import { type Measurement, median, QUICK, runCases } from './measure.js';

const LINES = QUICK ? 2000 : 300_000;
const ROUNDS = QUICK ? 1 : 5;
const START = Date.parse('2026-11-20T00:00:00Z');

const POLICY = `domain: shop
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 20, fill_interval: 2s } }
`;
const MAP = `domain: shop
time: start_time
method: method
flags: flags
details: details
duration: duration
duration_unit: ms
descriptors: [[{ key: tenant, from: tenant }]]
`;

/** Returns an access log, whose lines are in the order in which the requests end. */
function accessLog(): string {
  const lines = Array.from({ length: LINES }, (_, at) => {
    const start = new Date(START + at * 8 - (at % 97)).toISOString();
    return (
      `{"start_time":"${start}","method":"GET","path":"/api/v1/items/${at % 89}","code":200,"flags":"-",` +
      `"details":"via_upstream","duration":${at % 97},"tenant":"tenant-${(at * 7919) % 2000}","bytes":${at % 5000},` +
      `"user_agent":"curl/8.4.0","upstream":"10.0.0.${at % 250}:8080"}\n`
    );
  });
  return lines.join('');
}

/** Returns the CPU time of a line in nanoseconds. */
async function measured(name: string, run: () => Promise<number>): Promise<Measurement> {
  const nanos: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const before = process.cpuUsage();
    const lines = await run();
    if (lines !== LINES) throw new Error(`${lines} of ${LINES} lines were read`);
    const { user, system } = process.cpuUsage(before);
    // The first round warms up.
    if (round > 0) nanos.push(((user + system) * 1000) / LINES);
  }
  return { name, value: median(nanos), min: Math.min(...nanos), unit: 'ns' };
}

async function measure(): Promise<readonly Measurement[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  try {
    const log = file('access.log', accessLog());
    const map = readReplayMap(file('map.yaml', MAP)) as LogMap;
    const { policySet: policy } = loadPolicies([file('policy.yaml', POLICY)]);
    const read = async (): Promise<number> => {
      const reader = mappedReader(map, false, new LogFacts());
      let requests = 0;
      for await (const { lines } of readLines(log)) {
        for (const line of lines) if (line !== '' && typeof reader(line as string) === 'object') requests++;
      }
      return requests;
    };
    const options = {
      policy,
      map,
      logs: [log],
      by: undefined,
      server: replayedServer('hold'),
      onProgress: () => {},
    };
    const replay = async (against: typeof policy | undefined): Promise<number> => {
      const result = await new Replay({ ...options, against, signal: new AbortController().signal }).run();
      return result.tally.all.requests;
    };
    return [
      await measured('a line read', read),
      await measured('a line replayed', () => replay(undefined)),
      await measured('a line replayed with two policies', () => replay(policy)),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

runCases(__filename, { 'lines of an access log': { measure } });
