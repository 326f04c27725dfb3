import { StorageError, type TakeResult } from '../../limiter/bucket-store.js';
import type { HoldEvent, UndecidedReason } from './decision-record.js';

/** The trace that a request belongs to. */
export interface RequestTrace {
  /** 32 hexadecimal digits; '' if there is no trace. */
  readonly traceId: string;
  /** Span in which the decision is recorded; absent if the trace is not recorded. */
  readonly span?: DecisionSpan | undefined;
}

export interface DecisionSpan {
  /**
   * Records the answer. `rule` is the limit that decided, or one that applied; '' for none. `hold` is what the request
   * did to its first hold.
   */
  decided(
    domain: string,
    code: 'OK' | 'OVER_LIMIT',
    rule: string,
    reason: UndecidedReason | undefined,
    hold: HoldEvent | undefined,
  ): void;
  /** Records a store call about `limits` limits. The returned span records how the call ended. */
  storeCalled(limits: number): StoreSpan;
}

/** The span of one store call. */
export interface StoreSpan {
  /** Ends the span; `error` if the store could not decide. */
  ended(error: StorageError | undefined): void;
  /** Discards the span, because the answer was cached and no call was made. */
  notCalled(): void;
}

/** Ends `span` with the result of a store call. `calls`: an immediate result was cached, so no call was made. */
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
