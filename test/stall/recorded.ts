import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../support/process/tools.js';
import type { Measurement } from './measure-case.js';

const FILE = join(repositoryRoot, 'test/stall/recorded.json');
/** The event loop's own delay, in milliseconds, above which a case fails. */
const MOST_DELAY_MS = 50;
/** Maximum ratio of the CPU time per kilobyte to the recorded one. */
const MOST_TIMES = 3;
/** CPU time that is not told from noise, in microseconds: so much more than those times is let pass. */
const NOISE_MICROS = 50_000;

/** CPU per kilobyte of each case, in millionths of the yardstick of its run (calibration.ts). */
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

/** What is recorded of a measurement: microseconds per kilobyte over the yardstick's milliseconds, in thousandths. */
export function recordOf({ microsPerKilobyte }: Measurement, yardstick: number): number {
  return Number(((microsPerKilobyte / yardstick) * 1000).toPrecision(3));
}

/** Says what no further try will mend. */
export const NOT_RECORDED = 'no cost is recorded: npm run stall -- --record';

/**
 * Returns the failures of a measurement, in sentences; none if it passes. Without `recorded`, the CPU time is not
 * checked.
 */
export function faultsOf(measured: Measurement, recorded: Recorded | undefined, yardstick: number): string[] {
  const { innocent, delayMs, kilobytes, microsPerKilobyte, alive } = measured;
  const faults: string[] = [];
  if (!alive) faults.push('weir has ended');
  if (kilobytes === 0) faults.push('the attack sent nothing');
  if (innocent.failure !== undefined) faults.push(`the innocent caller got ${innocent.failure}`);
  else if (innocent.unanswered > 0)
    faults.push(`${innocent.unanswered} calls of the innocent caller were not answered`);
  if (delayMs > MOST_DELAY_MS)
    faults.push(
      `the event loop was held up for ${delayMs.toFixed(0)} ms at a stretch, more than ${MOST_DELAY_MS}`,
    );
  if (recorded === undefined) return faults;
  const before = recorded[recordName(measured)];
  const now = recordOf(measured, yardstick);
  if (before === undefined) faults.push(NOT_RECORDED);
  else if ((microsPerKilobyte * kilobytes * (now - MOST_TIMES * before)) / now > NOISE_MICROS)
    faults.push(
      `a kilobyte of it takes ${(now / before).toFixed(1)} times the CPU recorded (${now} against ` +
        `${before} thousandths of the yardstick)`,
    );
  return faults;
}
