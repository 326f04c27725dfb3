import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { UndecidedReason } from './decision-record.js';

/** What is known of the trace that a request belongs to. */
export interface RequestTrace {
  /** 32 hexadecimal digits; '' where there is none. */
  readonly traceId: string;
  /** Where the decision is recorded; absent where it is not. */
  readonly span?: DecisionSpan | undefined;
}

/** The span of one request, which is told what becomes of it. */
export interface DecisionSpan {
  /**
   * It was answered. `rule` is that of the limit which decided, else of one that it met, or `block` or `allow` where an
   * operator did; '' for none.
   */
  decided(domain: string, code: 'OK' | 'OVER_LIMIT', rule: string, reason: UndecidedReason | undefined): void;
  /** The store is asked about so many limits; what comes back is told how that ended. */
  storeCalled(limits: number): StoreSpan;
}

/** The span of one question to the store. */
export interface StoreSpan {
  /** `error`: it could not decide. */
  ended(error: StorageError | undefined): void;
  /** The answer was at hand, and no call was made. */
  notCalled(): void;
}

/** Tells `span` what came of a question to the store; `calls`: what is answered at once was not asked of it. */
export function recordStoreSpan(
  span: StoreSpan,
  result: TakeResult | Promise<TakeResult>,
  calls: boolean,
): TakeResult | Promise<TakeResult> {
  const end = (settled: TakeResult): TakeResult => {
    span.ended(settled instanceof StorageError ? settled : undefined);
    return settled;
  };
  if (result instanceof Promise) return result.then(end);
  if (calls && !(result instanceof StorageError)) span.notCalled();
  else end(result);
  return result;
}
