import type { OpenCounter, OpenShare } from '../decide/open-verdicts.js';
import type { Verdict } from '../decide/verdict.js';
import type { Affected, Interval } from '../report/report.js';
import { continueRun, type DenialRun } from './denial-run.js';
import { timeText } from './time-text.js';

/** Counts the decisions on some requests before and after a change. */
export class AffectedCount implements OpenCounter {
  requests = 0;
  readonly newlyDenied = new IntervalCount();
  readonly #deniedAfter = new IntervalCount();
  readonly #newlyAllowed = new IntervalCount();
  #deniedBefore = 0;
  #firstDeniedMicros: number | undefined;
  #lastDeniedMicros = 0;
  #second = -1;
  #inSecond = 0;
  #peakPerSecond = 0;

  /** The longest time for which all requests of one caller were denied, in microseconds. */
  longestDeniedMicros = 0;

  /**
   * Counts a request. `after` is the verdict to count, of one limit or of the whole `request`. `before` is `request`
   * too, if both policies certainly decide it equally. `run` belongs to its caller, if the caller is known.
   */
  add(startMicros: number, before: Verdict, after: Verdict, request: Verdict, run?: DenialRun): void {
    this.requests++;
    // Nearly all requests are allowed.
    if (before.mayBeDenied || after.mayBeDenied || request.mayBeDenied)
      this.#countDenial(startMicros, before, after, request);
    if (run !== undefined) {
      const deniedMicros = continueRun(run, after.denied, startMicros);
      if (deniedMicros > this.longestDeniedMicros) this.longestDeniedMicros = deniedMicros;
    }
    this.#countSecond(Math.floor(startMicros / 1e6));
  }

  #countDenial(startMicros: number, before: Verdict, after: Verdict, request: Verdict): void {
    const isSame = before === request;
    if (before.denied) this.#deniedBefore++;
    const isNewlyDenied = after.mayBeDenied && !before.isDenied && !isSame;
    if ((isSame || before.open === undefined) && request.open === after.open && after.open !== undefined) {
      after.open.countFor(this, isSame ? 'same' : before.denied ? 'denied' : 'allowed');
    } else {
      this.#deniedAfter.add(after.isDenied, after.mayBeDenied);
      this.newlyDenied.add(after.isDenied && !before.mayBeDenied, isNewlyDenied);
      const mayBeAllowed = before.mayBeDenied && !request.isDenied && !isSame;
      this.#newlyAllowed.add(before.isDenied && !request.mayBeDenied, mayBeAllowed);
    }
    if (!isNewlyDenied) return;
    this.#firstDeniedMicros ??= startMicros;
    this.#lastDeniedMicros = startMicros;
  }

  addOpen({ allowedBefore, deniedBefore, same }: OpenShare, least: number, most: number): void {
    this.#deniedAfter.addBounds(least, most);
    this.newlyDenied.addBounds(Math.max(0, least - deniedBefore - same), Math.min(allowedBefore, most));
    this.#newlyAllowed.addBounds(
      Math.max(0, deniedBefore - most),
      Math.min(deniedBefore, allowedBefore + deniedBefore + same - least),
    );
  }

  #countSecond(second: number): void {
    if (second !== this.#second) {
      this.#second = second;
      this.#inSecond = 0;
    }
    this.#inSecond++;
    if (this.#inSecond > this.#peakPerSecond) this.#peakPerSecond = this.#inSecond;
  }

  report(): Affected {
    const first = this.#firstDeniedMicros;
    return {
      requests: this.requests,
      deniedBefore: this.#deniedBefore,
      deniedAfter: this.#deniedAfter.report(),
      newlyDenied: this.newlyDenied.report(),
      newlyAllowed: this.#newlyAllowed.report(),
      ...(first !== undefined && {
        firstDenied: timeText(first),
        lastDenied: timeText(this.#lastDeniedMicros),
      }),
      longestDeniedSeconds: this.longestDeniedMicros / 1e6,
      peakPerSecond: this.#peakPerSecond,
    };
  }
}

/** A number of requests of which the log determines only the bounds. */
class IntervalCount {
  least = 0;
  most = 0;

  add(isCertain: boolean, isPossible: boolean): void {
    if (isCertain) this.least++;
    if (isPossible) this.most++;
  }

  addBounds(least: number, most: number): void {
    this.least += least;
    this.most += most;
  }

  report(): Interval {
    return { least: this.least, most: this.most };
  }
}
