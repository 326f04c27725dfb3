import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../support/process/tools.js';
import type { Measurement } from './measure-case.js';

const FILE = join(repositoryRoot, 'test/stall/recorded.json');
/** Maximum event-loop delay, in milliseconds. */
const MAX_DELAY_MS = 50;
/** Maximum ratio of the measured cost to the recorded cost. */
const MAX_COST_RATIO = 3;
/** CPU microseconds above that ratio that do not fail a case, because they may be noise. */
const NOISE_MICROS = 50_000;

/** Cost of each case: CPU time per kilobyte, in millionths of the calibration loop's time (calibration.ts). */
export type Recorded = Readonly<Record<string, number>>;

export function readRecorded(): Recorded {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Recorded;
}

export function writeRecorded(recorded: Recorded): void {
  const sorted = Object.entries(recorded).sort(([one], [other]) => (one < other ? -1 : 1));
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}

/** Returns the name under which a measurement is recorded. */
export function recordName({ name, connections }: Measurement): string {
  return `${name} (${connections})`;
}

/** Returns the cost to record: CPU time per kilobyte, in millionths of the calibration loop's time. */
export function relativeCostOf({ microsPerKilobyte }: Measurement, calibrationMs: number): number {
  return Number(((microsPerKilobyte / calibrationMs) * 1000).toPrecision(3));
}

/** A failure that a repetition cannot fix. */
export const NOT_RECORDED = 'no cost is recorded; run npm run stall -- --record';

/** Returns a message for each failure of a measurement. Without `recorded`, the CPU time is not checked. */
export function failuresOf(
  measured: Measurement,
  recorded: Recorded | undefined,
  calibrationMs: number,
): string[] {
  const { innocent, delayMs, kilobytes, microsPerKilobyte, alive } = measured;
  const failures: string[] = [];
  if (!alive) failures.push('weir has ended');
  if (kilobytes === 0) failures.push('the attack sent no data');
  if (innocent.failure !== undefined) failures.push(`the innocent caller received ${innocent.failure}`);
  else if (innocent.unanswered > 0)
    failures.push(`${innocent.unanswered} calls of the innocent caller were not answered`);
  if (delayMs > MAX_DELAY_MS)
    failures.push(
      `one task blocked the event loop for ${delayMs.toFixed(0)} ms; the maximum is ${MAX_DELAY_MS} ms`,
    );
  if (recorded === undefined) return failures;
  const before = recorded[recordName(measured)];
  const now = relativeCostOf(measured, calibrationMs);
  if (before === undefined) failures.push(NOT_RECORDED);
  else if ((microsPerKilobyte * kilobytes * (now - MAX_COST_RATIO * before)) / now > NOISE_MICROS)
    failures.push(
      `a kilobyte of the attack takes ${(now / before).toFixed(1)} times the recorded CPU time (${now} ` +
        `instead of ${before} millionths of the calibration loop's time)`,
    );
  return failures;
}
