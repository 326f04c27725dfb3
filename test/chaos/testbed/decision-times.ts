import { waitFor } from '../../support/process/wait-for.js';

/** Times of the last decisions from Redis, by names of connections and buckets, in milliseconds of the test's clock. */
export class DecisionTimes {
  private readonly decided = new Map<string, readonly [sentMs: number, endMs: number]>();
  /** Times at which the last calls without a decision were sent. */
  private readonly undecided = new Map<string, number>();

  record(name: string, sentMs: number, endMs: number): void {
    this.decided.set(name, [sentMs, endMs]);
  }

  recordUndecided(name: string, sentMs: number): void {
    this.undecided.set(name, sentMs);
  }

  /**
   * Waits until all names have a decision of a call that was sent after `sinceMs`. Resolves with the time at which the
   * last name got its first decision, or with undefined after `timeoutMs`. The next call for one of `rareNames` may be
   * much later than the recovery, so such a name counts with the time of its last call without a decision instead.
   */
  async waitForAll(
    sinceMs: number,
    names: readonly string[],
    rareNames: readonly string[],
    timeoutMs: number,
  ): Promise<number | undefined> {
    const firstDecisions = new Map<string, number>();
    const check = (): true | undefined => {
      for (const name of [...names, ...rareNames]) {
        const [sentMs = 0, endMs = 0] = this.decided.get(name) ?? [];
        if (sentMs < sinceMs || firstDecisions.has(name)) continue;
        const undecidedMs = Math.max(this.undecided.get(name) ?? 0, sinceMs);
        firstDecisions.set(name, names.includes(name) ? endMs : undecidedMs);
      }
      return firstDecisions.size === names.length + rareNames.length ? true : undefined;
    };
    try {
      await waitFor('decisions', check, timeoutMs);
    } catch {
      return undefined;
    }
    return Math.max(...firstDecisions.values());
  }
}
