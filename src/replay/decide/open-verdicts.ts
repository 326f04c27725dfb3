/** Some of the verdicts of {@link OpenVerdicts}: those of one rule or one group, for example. */
export interface OpenShare {
  allowedBefore: number;
  deniedBefore: number;
  /** Verdicts that are the same before and after the change in every order. */
  same: number;
}

/** Receives the bounds of some counts, once they are final. */
export interface OpenCounter {
  /** Adds `share` verdicts. Between `least` and `most` of them deny. */
  addOpen(share: OpenShare, least: number, most: number): void;
}

/**
 * Verdicts of one bucket that the log leaves open together. The log does not tell which of them deny, but nearly how
 * many: the tokens at the beginning and the refill determine the total that a bucket allows. So the number of denials
 * differs from the one of the replay by at most {@link #swing} and {@link #addedSwing}.
 */
export class OpenVerdicts {
  /** Number of verdicts, and how many of them deny in the replay. */
  #count = 0;
  #denied = 0;
  /** Number of verdicts that were counted, or are not to be counted. */
  #settled = 0;
  #isClosed = false;
  #swing = 0;
  #addedSwing = 0;
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
    this.#addedSwing += swing;
  }

  /** Counts a verdict, which was another one `before`. Call {@link settle} once for each verdict afterwards. */
  countFor(counter: OpenCounter, before: 'same' | 'allowed' | 'denied'): void {
    let share = this.#shares.get(counter);
    if (share === undefined) {
      share = { allowedBefore: 0, deniedBefore: 0, same: 0 };
      this.#shares.set(counter, share);
    }
    if (before === 'same') share.same++;
    else if (before === 'denied') share.deniedBefore++;
    else share.allowedBefore++;
  }

  settle(): void {
    this.#settled++;
    this.#finish();
  }

  /**
   * Says that no verdict will be added. `agrees`: whether the bucket is as in the replay again. Then as many verdicts
   * deny, unless {@link widenBy} was called.
   */
  close(agrees = false): void {
    if (agrees && this.#swing !== Number.POSITIVE_INFINITY) this.#swing = 0;
    this.#isClosed = true;
    this.#finish();
  }

  #finish(): void {
    if (!this.#isClosed || this.#settled < this.#count) return;
    const swing = this.#swing + this.#addedSwing;
    for (const [counter, share] of this.#shares) {
      const own = share.allowedBefore + share.deniedBefore + share.same;
      const others = this.#count - own;
      const least = Math.max(0, this.#denied - swing - others);
      counter.addOpen(share, least, Math.min(own, this.#denied + swing));
    }
    this.#shares.clear();
  }
}

/** Returns a verdict that nothing is known about. */
export function singleOpen(isDenied: boolean): OpenVerdicts {
  const open = new OpenVerdicts();
  open.add(isDenied);
  open.widen(1);
  open.close();
  return open;
}
