/** A circuit breaker that opens after consecutive failures. Its owner sends probes and closes it. */
export class CircuitBreaker {
  private readonly limit: number;
  private run = 0;
  private tripped = false;

  /** `limit`: number of consecutive failures that open it; at least 1. */
  constructor(limit: number) {
    this.limit = limit;
  }

  get open(): boolean {
    return this.tripped;
  }

  /** Records a successful call. Does not close an open breaker, because a late reply proves little. */
  success(): void {
    this.run = 0;
  }

  /** Records a failed call. Returns whether it opened the breaker. */
  failure(): boolean {
    this.run++;
    if (this.tripped || this.run < this.limit) return false;
    this.tripped = true;
    return true;
  }

  /** Opens the breaker at once. Returns whether it was closed before. */
  trip(): boolean {
    const opened = !this.tripped;
    this.tripped = true;
    return opened;
  }

  /** Closes the breaker after a successful probe or with a new connection. */
  close(): void {
    this.run = 0;
    this.tripped = false;
  }
}
