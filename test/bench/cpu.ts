import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

let ticksPerSecond: number | undefined;

function ticksToMicros(ticks: number): number {
  ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return (ticks / ticksPerSecond) * 1e6;
}

/**
 * Numbers of /proc/<pid>/stat after the command name, which stands in parentheses and may hold anything. Field 3 is at
 * index 0.
 */
function statFields(pid: number | 'self'): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/**
 * CPU time (user and system, all threads) a process has used so far, in microseconds. Linux only. Exact to the
 * nanosecond where the kernel keeps schedstat, else to the 10 ms of a tick.
 */
export function cpuMicros(pid: number): number {
  try {
    let nanos = 0;
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      nanos += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
    }
    if (nanos > 0) return nanos / 1000;
  } catch {
    // No schedstat in this kernel, or a thread that has just ended.
  }
  const fields = statFields(pid);
  return ticksToMicros(Number(fields[11]) + Number(fields[12]));
}

/**
 * CPU time (user and system) a process has used so far, threads that have ended included, in microseconds; resolution
 * 10 ms. Linux only.
 */
export function cpuMicrosOfAll(pid: number): number {
  const fields = statFields(pid);
  return ticksToMicros(Number(fields[11]) + Number(fields[12]));
}

/** CPU time of the children of this process that have ended, in microseconds; resolution 10 ms. */
export function endedChildrenMicros(): number {
  const fields = statFields('self');
  return ticksToMicros(Number(fields[13]) + Number(fields[14]));
}

/** Memory of a process that is in RAM (VmRSS), in bytes. */
export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) * 1024;
}
