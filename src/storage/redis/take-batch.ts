import type { StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';
import { TakeArguments, TakeReply } from './take-script.js';

interface PendingTake {
  readonly items: readonly TakeItem[];
  readonly deadlineMicros: number;
  resolve: ((result: TakeResult) => void) | undefined;
}

/** The requests of one script call, and the promises their callers hold. */
export class TakeBatch {
  itemCount = 0;
  /** When it was sent, on the clock of deadlines; 0 before. */
  sentMicros = 0;
  /** Redis's time in the answer. */
  nowMicros = 0;
  /** Soonest deadline of a take that still waits, Infinity when none does. */
  soonestDeadline = Infinity;
  private readonly takes: PendingTake[] = [];
  private pending = 0;

  get takeCount(): number {
    return this.takes.length;
  }

  /** Whether anybody still waits. */
  get hasPending(): boolean {
    return this.pending > 0;
  }

  /** Adds a request; the promise is settled by one of {@link succeed}, {@link fail} and {@link expire}. */
  add(items: readonly TakeItem[], deadlineMicros: number): Promise<TakeResult> {
    this.itemCount += items.length;
    this.pending++;
    this.soonestDeadline = Math.min(this.soonestDeadline, deadlineMicros);
    return new Promise((resolve) => {
      this.takes.push({ items, deadlineMicros, resolve });
    });
  }

  /** Arguments of the script call; see take.lua. */
  command(
    keyOf: (item: TakeItem) => string,
    clock: number | undefined,
    seenMicros: number,
    countDeniedHits: boolean,
  ): string[] {
    const args = new TakeArguments();
    for (const take of this.takes) args.add(take.items, keyOf);
    return args.toCommand(clock, seenMicros, countDeniedHits);
  }

  /** Hands out the answer. Returns how many still waited for it. Throws an Error when it cannot be read. */
  succeed(reply: unknown): number {
    const reader = new TakeReply(reply, this.itemCount);
    this.nowMicros = reader.nowMicros;
    let settled = 0;
    for (const take of this.takes) {
      if (take.resolve === undefined) {
        reader.skip(take.items);
      } else {
        this.settle(take, reader.next(take.items));
        settled++;
      }
    }
    return settled;
  }

  /** Gives `error` to all who still wait. Returns how many. */
  fail(error: StorageError): number {
    return this.expire(Infinity, error);
  }

  /** Gives `error` to those whose deadline is at `nowMicros` or before. Returns how many. */
  expire(nowMicros: number, error: StorageError): number {
    let settled = 0;
    this.soonestDeadline = Infinity;
    for (const take of this.takes) {
      if (take.resolve === undefined) continue;
      if (take.deadlineMicros <= nowMicros) {
        this.settle(take, error);
        settled++;
      } else {
        this.soonestDeadline = Math.min(this.soonestDeadline, take.deadlineMicros);
      }
    }
    return settled;
  }

  private settle(take: PendingTake, result: TakeResult): void {
    take.resolve?.(result);
    take.resolve = undefined;
    this.pending--;
  }
}
