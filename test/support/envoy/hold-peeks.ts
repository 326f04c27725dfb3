import { expect } from '@jest/globals';
import { RlsClient } from '../grpc/rls-client.js';
import { descriptor } from '../policy/decider.js';
import { waitFor } from '../process/wait-for.js';

/** Peeks at limits with holds. Close it after use. */
export class HoldPeeks {
  private readonly domain: string;
  private readonly rls: RlsClient;

  constructor(domain: string, weirPort: number) {
    this.domain = domain;
    this.rls = new RlsClient(weirPort);
  }

  /** Returns `limit_remaining` for an entry, written as `key=value`, or undefined if weir does not answer. */
  async left(entry: string): Promise<number | undefined> {
    const { response } = await this.rls.ask(this.domain, [descriptor([entry], { hitsAddend: 0 })], {
      timeoutMs: 1000,
    });
    return response?.statuses[0]?.limitRemaining;
  }

  /** Waits until `limit_remaining` has this value. */
  async until(entry: string, left: number): Promise<void> {
    let last: number | undefined;
    await waitFor(`${left} left of ${entry}`, async () => {
      last = await this.left(entry);
      return last === left || undefined;
    }).catch((error) => {
      throw new Error(`${(error as Error).message}; ${last} left`);
    });
  }

  /**
   * Waits until the hold of an entry has expired, and `left` slots or hits remain. `before` and `after` are times of
   * `performance.now()` between which the hold was placed. Throws if the hold expires early, or more than a second
   * late.
   */
  async untilExpired(
    entry: string,
    left: number,
    lifetimeMs: number,
    { before, after }: { readonly before: number; readonly after: number },
  ): Promise<void> {
    let lastHeld = Number.NEGATIVE_INFINITY;
    const firstFree = await waitFor(`the hold of ${entry} to expire`, async () => {
      const askedAt = performance.now();
      const now = await this.left(entry);
      if (now !== undefined && now >= left) return performance.now();
      if (now !== undefined) lastHeld = askedAt;
      return undefined;
    });
    expect(firstFree).toBeGreaterThanOrEqual(before + lifetimeMs);
    expect(lastHeld).toBeLessThanOrEqual(after + lifetimeMs + 1000);
  }

  close(): void {
    this.rls.close();
  }
}
