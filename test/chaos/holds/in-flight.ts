/** The holds of a bucket until they end or expire. All times have the same unit. */
export class InFlight {
  private readonly expiries = new Map<string, number>();
  /** Maximum number of holds so far. */
  most = 0;
  /** Time of the last change. */
  changedAt = 0;

  place(id: string, expiresAt: number, now: number): void {
    this.expire(now);
    this.expiries.set(id, expiresAt);
    this.most = Math.max(this.most, this.expiries.size);
    this.changedAt = now;
  }

  end(id: string, now: number): void {
    this.expire(now);
    this.expiries.delete(id);
    this.changedAt = now;
  }

  /** Returns the number of holds that have not expired. */
  countAt(now: number): number {
    this.expire(now);
    return this.expiries.size;
  }

  /** Replaces all holds. */
  replace(expiries: Iterable<readonly [id: string, expiresAt: number]>): void {
    this.expiries.clear();
    for (const [id, expiresAt] of expiries) this.expiries.set(id, expiresAt);
  }

  private expire(now: number): void {
    for (const [id, expiresAt] of this.expiries) {
      if (expiresAt > now) continue;
      this.expiries.delete(id);
      this.changedAt = Math.max(this.changedAt, expiresAt);
    }
  }
}
