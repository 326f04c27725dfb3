import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProcess } from '../../support/process/processes.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { endedChildrenMicros } from '../cpu.js';
import { MAPPING, replayedPolicy, writeLog } from './write-log.js';

/** Interval at which the memory of the process is read. */
const MEMORY_INTERVAL_MS = 100;

/** Time and memory of one `weir replay`. */
interface ReplayRun {
  readonly seconds: number;
  /** CPU time of all threads. */
  readonly cpuMicros: number;
  readonly peakBytes: number;
}

/** Writes a log, and replays it `rounds` times. Prints a line for each round. */
export async function measureReplay(
  lines: number,
  rounds: number,
  printProgress: (line: string) => void,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  try {
    const [log, policy, mapping] = ['access.log', 'policy.yaml', 'mapping.yaml'].map((name) =>
      join(folder, name),
    ) as [string, string, string];
    printProgress(`replay: writing ${lines.toLocaleString('en')} lines`);
    await writeLog(log, lines);
    writeFileSync(policy, replayedPolicy());
    writeFileSync(mapping, MAPPING);
    console.log('replay                             lines/s   wall µs/line   CPU µs/line   peak RSS MB');
    for (let round = 1; round <= rounds; round++) {
      const options = ['--policy', policy, '--envoy', mapping, '--by', 'tenant', log];
      console.log(lineOf(round, lines, await runReplay(options)));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runReplay(options: readonly string[]): Promise<ReplayRun> {
  const main = join(repositoryRoot, 'build/src/main.js');
  const cpu = endedChildrenMicros();
  const start = performance.now();
  const replay = startProcess(process.execPath, [main, 'replay', ...options]);
  let peakBytes = 0;
  const timer = setInterval(() => {
    peakBytes = peakBytesOf(replay.pid) ?? peakBytes;
  }, MEMORY_INTERVAL_MS);
  const { code } = await replay.exited;
  clearInterval(timer);
  if (code !== 0) throw new Error(`weir replay exited with ${code}: ${replay.stderr()}`);
  return {
    seconds: (performance.now() - start) / 1000,
    cpuMicros: endedChildrenMicros() - cpu,
    peakBytes,
  };
}

/** Returns the peak of the resident memory (VmHWM), or undefined if the process has ended. */
function peakBytesOf(pid: number): number | undefined {
  try {
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}

function lineOf(round: number, lines: number, { seconds, cpuMicros, peakBytes }: ReplayRun): string {
  const figures = [
    Math.round(lines / seconds)
      .toLocaleString('en')
      .padStart(12),
    ((seconds * 1e6) / lines).toFixed(2).padStart(15),
    (cpuMicros / lines).toFixed(2).padStart(14),
    Math.round(peakBytes / 2 ** 20)
      .toString()
      .padStart(14),
  ];
  return `  round ${round}${' '.repeat(22)}${figures.join('')}`;
}
