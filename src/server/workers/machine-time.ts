/** Returns the monotonic time in microseconds, which is the same in all processes of the machine. */
export function machineMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
