import type { TokenBucketRate } from '../../../src/limiter/token-bucket.js';
import type { RecordedOutcome } from './take-vectors.js';

/**
 * A simple model of a token bucket that tests compare with the exact arithmetic: a rising level in big integers. A
 * token is `interval` units, and every microsecond adds `tokensPerFill` units.
 */
export class TokenLevel {
  private readonly token: bigint;
  private readonly perMicro: bigint;
  private readonly full: bigint;
  private readonly maxTokens: bigint;
  /** Lowest level, which is the deepest debt: negative, or 0. */
  private readonly lowest: bigint;
  private level: bigint;
  private at: number;

  constructor(rate: TokenBucketRate, nowMicros: number) {
    this.token = BigInt(rate.fillIntervalMicros);
    this.perMicro = BigInt(rate.tokensPerFill);
    this.maxTokens = BigInt(rate.maxTokens);
    this.full = this.maxTokens * this.token;
    this.lowest = -BigInt(rate.maxDebt) * this.token;
    this.level = this.full;
    this.at = nowMicros;
  }

  take(hits: number, refund: boolean, nowMicros: number): RecordedOutcome {
    this.set(this.level + BigInt(nowMicros - this.at) * this.perMicro);
    this.at = nowMicros;
    const asked = BigInt(hits) * this.token;
    if (refund) {
      this.set(this.level + asked);
    } else if (this.lowest < 0n && hits > 1) {
      this.level = this.level - asked < this.lowest ? this.lowest : this.level - asked;
    } else if ((hits === 0 ? this.token : asked) > this.level) {
      const passes = hits === 0 ? this.token : asked > this.full ? this.full : asked;
      return this.outcome(true, passes);
    } else {
      this.level -= asked;
    }
    const next = (this.remaining() + 1n) * this.token;
    return this.outcome(false, next > this.full ? this.full : next);
  }

  private set(level: bigint): void {
    this.level = level > this.full ? this.full : level;
  }

  private remaining(): bigint {
    return this.level < 0n ? 0n : this.level / this.token;
  }

  private outcome(overLimit: boolean, until: bigint): RecordedOutcome {
    const missing = until - this.level;
    const remaining = this.remaining();
    return {
      overLimit,
      remaining: Number(remaining),
      used: Number(this.maxTokens - remaining),
      waitMicros: Number((missing + this.perMicro - 1n) / this.perMicro),
    };
  }
}
