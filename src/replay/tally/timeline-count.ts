import type { Timeline } from '../report/report.js';
import { timeText } from './time-text.js';

/** Lengths of a step, in seconds. */
const STEP_SECONDS = [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400];
/** Steps that may be counted. With more, steps become longer. */
export const MAX_STEPS = 1440;

/** The steps in which something happened to a caller. */
export class StepSet {
  readonly #bits = new Uint8Array(MAX_STEPS / 8);

  add(step: number): void {
    this.#bits[step >> 3] = (this.#bits[step >> 3] ?? 0) | (1 << (step & 7));
  }

  /** Returns the steps in ascending order. */
  steps(): number[] {
    const steps: number[] = [];
    for (let step = 0; step < MAX_STEPS; step++)
      if (((this.#bits[step >> 3] as number) & (1 << (step & 7))) !== 0) steps.push(step);
    return steps;
  }

  clear(): void {
    this.#bits.fill(0);
  }
}

/** Counts requests in steps of equal length, which become longer if a log needs more than {@link MAX_STEPS}. */
export class TimelineCount {
  #stepSeconds = STEP_SECONDS[0] as number;
  #firstStep: number | undefined;
  #requests: number[] = [];
  #deniedBefore: number[] = [];
  #deniedAfter: number[] = [];
  /** The sets that contain steps, to be changed with the length of steps. */
  readonly #sets: StepSet[] = [];

  /** Returns a new set of steps. */
  newSet(): StepSet {
    const steps = new StepSet();
    this.#sets.push(steps);
    return steps;
  }

  /** Counts a request. Returns its step. */
  add(startMicros: number, deniedBefore: boolean, deniedAfter: boolean): number {
    let step = this.#stepOf(startMicros);
    while (step >= MAX_STEPS && this.#lengthen()) step = this.#stepOf(startMicros);
    while (this.#requests.length <= step) {
      this.#requests.push(0);
      this.#deniedBefore.push(0);
      this.#deniedAfter.push(0);
    }
    addOne(this.#requests, step);
    if (deniedBefore) addOne(this.#deniedBefore, step);
    if (deniedAfter) addOne(this.#deniedAfter, step);
    return step;
  }

  report(): Timeline {
    return {
      start: timeText((this.#firstStep ?? 0) * this.#stepSeconds * 1e6),
      stepSeconds: this.#stepSeconds,
      requests: this.#requests,
      deniedBefore: this.#deniedBefore,
      deniedAfter: this.#deniedAfter,
    };
  }

  #stepOf(startMicros: number): number {
    const step = Math.floor(startMicros / 1e6 / this.#stepSeconds);
    this.#firstStep ??= step;
    return Math.max(0, step - this.#firstStep);
  }

  /** Makes steps longer. Returns false if they have the greatest length. */
  #lengthen(): boolean {
    const seconds = STEP_SECONDS[STEP_SECONDS.indexOf(this.#stepSeconds) + 1];
    if (seconds === undefined) return false;
    const start = (this.#firstStep ?? 0) * this.#stepSeconds;
    const firstStep = Math.floor(start / seconds);
    const merged = (step: number): number =>
      Math.floor((start + step * this.#stepSeconds) / seconds) - firstStep;
    const mergeCounts = (counts: readonly number[]): number[] => {
      const sums: number[] = [];
      for (const [step, count] of counts.entries()) sums[merged(step)] = (sums[merged(step)] ?? 0) + count;
      return sums;
    };
    this.#requests = mergeCounts(this.#requests);
    this.#deniedBefore = mergeCounts(this.#deniedBefore);
    this.#deniedAfter = mergeCounts(this.#deniedAfter);
    for (const steps of this.#sets) {
      const old = steps.steps();
      steps.clear();
      for (const step of old) steps.add(merged(step));
    }
    this.#stepSeconds = seconds;
    this.#firstStep = firstStep;
    return true;
  }
}

function addOne(counts: number[], step: number): void {
  counts[step] = (counts[step] ?? 0) + 1;
}
