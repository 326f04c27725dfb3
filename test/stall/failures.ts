import type { Measurement } from './measure-case.js';

/** Maximum event-loop delay, in milliseconds. */
const MAX_DELAY_MS = 50;
/** Maximum time by which paced attacks may raise the innocent caller's latency at p99.9, in milliseconds. */
const MAX_ADDED_MS = 10;

/** Returns a message for each failure of a measurement that does not depend on the load of the machine. */
export function failuresOf(measured: Measurement): string[] {
  const { innocent, kilobytes, alive, answerFailures } = measured;
  const failures: string[] = [];
  if (!alive) failures.push('weir has ended');
  if (kilobytes === 0) failures.push('the attack sent no data');
  if (innocent.failure !== undefined) failures.push(`the innocent caller received ${innocent.failure}`);
  else if (innocent.unanswered > 0)
    failures.push(`${innocent.unanswered} calls of the innocent caller were not answered`);
  return [...failures, ...answerFailures];
}

/** Returns a message for each time that is too long. On a busy machine, such failures mean nothing. */
export function delaysOf({ delayMs, innocent, quiet }: Measurement): string[] {
  const failures: string[] = [];
  if (delayMs > MAX_DELAY_MS)
    failures.push(
      `one task blocked the event loop for ${delayMs.toFixed(0)} ms; the maximum is ${MAX_DELAY_MS} ms`,
    );
  if (quiet === undefined) return failures;
  const addedMs = innocent.p999Ms - Math.max(quiet[0].p999Ms, quiet[1].p999Ms);
  if (addedMs > MAX_ADDED_MS)
    failures.push(
      `the innocent caller waits ${addedMs.toFixed(1)} ms longer at p99.9; the maximum is ${MAX_ADDED_MS} ms`,
    );
  return failures;
}
