import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

let ticksPerSecond: number | undefined;

function ticksToMicros(ticks: number): number {
  ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return (ticks / ticksPerSecond) * 1e6;
}

/**
 * Returns the fields of /proc/<pid>/stat after the command name, which is in parentheses and may contain any character.
 * Field 3 has the index 0.
 */
function statFields(pid: number | 'self'): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/**
 * Returns the CPU time (user and system) of all running threads of a process, in microseconds. Works only on Linux. The
 * resolution is a nanosecond if the kernel provides schedstat, and 10 ms otherwise.
 */
export function cpuMicros(pid: number): number {
  try {
    let nanos = 0;
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      nanos += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
    }
    if (nanos > 0) return nanos / 1000;
  } catch {
    // The kernel provides no schedstat, or a thread has just ended.
  }
  const fields = statFields(pid);
  return ticksToMicros(Number(fields[11]) + Number(fields[12]));
}

/** Returns the CPU time of this process's children that have ended, in microseconds. The resolution is 10 ms. */
export function endedChildrenMicros(): number {
  const fields = statFields('self');
  return ticksToMicros(Number(fields[13]) + Number(fields[14]));
}

/** Returns the resident memory (VmRSS) of a process, in bytes. */
export function residentBytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) * 1024;
}
