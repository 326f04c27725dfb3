/** Opens after a run of failures; whoever probes closes it. */
export class CircuitBreaker {
  private readonly limit: number;
  private run = 0;
  private tripped = false;

  /** `limit` failures in a row open it; at least 1. */
  constructor(limit: number) {
    this.limit = limit;
  }

  get open(): boolean {
    return this.tripped;
  }

  /** A call was answered. Does not close an open breaker: a straggler says little. */
  success(): void {
    this.run = 0;
  }

  /** A call failed. Returns whether this opened the breaker. */
  failure(): boolean {
    this.run++;
    if (this.tripped || this.run < this.limit) return false;
    this.tripped = true;
    return true;
  }

  /** Opens it without a run: nothing answers at all. Returns whether this opened it. */
  trip(): boolean {
    const opened = !this.tripped;
    this.tripped = true;
    return opened;
  }

  /** A probe succeeded, or there is a new connection. */
  close(): void {
    this.run = 0;
    this.tripped = false;
  }
}
