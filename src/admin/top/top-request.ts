import type {
  TopBuckets,
  TopFilter,
  TopMeasure,
  TopRow,
  TopSpan,
  TopSpanSummary,
} from '../../telemetry/top/top-buckets.js';

/** Request to a process that decides: its own top buckets, or its counts of buckets that others named. */
export type TopRequest =
  | { readonly kind: 'rank'; readonly by: TopMeasure; readonly filter: TopFilter; readonly most: number }
  | { readonly kind: 'look'; readonly of: TopSpan; readonly keys: readonly string[] };

/** Counts of a process. */
export interface TopReport {
  readonly rows: readonly TopRow[];
  readonly about: TopSpanSummary;
}

/** Collects counts from all processes that decide. Processes that do not answer are left out. */
export type RequestTop = (ask: TopRequest) => Promise<readonly TopReport[]>;

/** Returns the counts of a process. */
export function reportTop(top: TopBuckets, ask: TopRequest): TopReport {
  const isRank = ask.kind === 'rank';
  const rows = isRank ? top.rank(ask.by, ask.filter, ask.most) : top.look(ask.of, ask.keys);
  return { rows, about: top.about(isRank ? ask.filter.of : ask.of) };
}
