import { waitFor } from '../../support/process/wait-for.js';

/** When what was asked had decisions of Redis, by names: of connections, of buckets. Milliseconds of the harness. */
export class Decisions {
  private readonly decided = new Map<string, readonly [sentMs: number, endMs: number]>();
  /** When a call was sent last that ended without one. */
  private readonly undecided = new Map<string, number>();

  decide(name: string, sentMs: number, endMs: number): void {
    this.decided.set(name, [sentMs, endMs]);
  }

  miss(name: string, sentMs: number): void {
    this.undecided.set(name, sentMs);
  }

  /**
   * Resolves when all names have had a decision that was asked for after `sinceMs`, with when the last of them had its
   * first; with undefined when they do not get that far. Of `rare` names, which are asked for less often, those do not
   * make it later that had no call without a decision before.
   */
  async since(
    sinceMs: number,
    names: readonly string[],
    rare: readonly string[],
    withinMs: number,
  ): Promise<number | undefined> {
    const firsts = new Map<string, number>();
    const missed = new Set<string>();
    const look = (): true | undefined => {
      for (const name of [...names, ...rare]) {
        if ((this.undecided.get(name) ?? 0) >= sinceMs) missed.add(name);
        const [sentMs = 0, endMs = 0] = this.decided.get(name) ?? [];
        if (sentMs < sinceMs || firsts.has(name)) continue;
        firsts.set(name, missed.has(name) || names.includes(name) ? endMs : sinceMs);
      }
      return firsts.size === names.length + rare.length ? true : undefined;
    };
    try {
      await waitFor('decisions', look, withinMs);
    } catch {
      return undefined;
    }
    return Math.max(...firsts.values());
  }
}
