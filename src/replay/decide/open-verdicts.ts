/** Some of the verdicts of {@link OpenVerdicts}: those of one rule or one group, for example. */
export interface OpenShare {
  allowedBefore: number;
  deniedBefore: number;
}

/** Receives the bounds of some counts, once they are final. */
export interface OpenCounter {
  /** Adds `share` verdicts. Between `least` and `most` of them deny. */
  addOpen(share: OpenShare, least: number, most: number): void;
}

/**
 * Verdicts of one bucket that the log leaves open together. The log does not tell which of them deny, but nearly how
 * many: the tokens at the beginning and the refill determine the total that a bucket allows. So the number of denials
 * differs from the one of the replay by at most {@link #swing}.
 */
export class OpenVerdicts {
  /** Number of verdicts, and how many of them deny in the replay. */
  #count = 0;
  #denied = 0;
  /** Number of verdicts that were counted, or are not to be counted. */
  #settled = 0;
  #isClosed = false;
  #swing = 0;
  readonly #shares = new Map<OpenCounter, OpenShare>();

  add(isDenied: boolean): void {
    this.#count++;
    if (isDenied) this.#denied++;
  }

  /** Raises the number of denials that may be more or fewer than in the replay. */
  widen(swing: number): void {
    if (swing > this.#swing) this.#swing = swing;
  }

  /** Adds to the number of denials that may be more or fewer than in the replay. */
  widenBy(swing: number): void {
    this.#swing += swing;
  }

  /** Counts a verdict. Call {@link settle} once for each verdict afterwards. */
  countFor(counter: OpenCounter, wasDenied: boolean): void {
    let share = this.#shares.get(counter);
    if (share === undefined) {
      share = { allowedBefore: 0, deniedBefore: 0 };
      this.#shares.set(counter, share);
    }
    if (wasDenied) share.deniedBefore++;
    else share.allowedBefore++;
  }

  settle(): void {
    this.#settled++;
    this.#finish();
  }

  /** Says that no verdict will be added. */
  close(): void {
    this.#isClosed = true;
    this.#finish();
  }

  #finish(): void {
    if (!this.#isClosed || this.#settled < this.#count) return;
    for (const [counter, share] of this.#shares) {
      const own = share.allowedBefore + share.deniedBefore;
      const others = this.#count - own;
      const least = Math.max(0, this.#denied - this.#swing - others);
      counter.addOpen(share, least, Math.min(own, this.#denied + this.#swing));
    }
    this.#shares.clear();
  }
}
