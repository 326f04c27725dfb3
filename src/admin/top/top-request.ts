import type {
  TopBuckets,
  TopFilter,
  TopMeasure,
  TopRow,
  TopSpan,
  TopSpanSummary,
} from '../../telemetry/top/top-buckets.js';

/** What a process that decides is asked: its own first ones, or what it knows of buckets that others named. */
export type TopRequest =
  | { readonly kind: 'rank'; readonly by: TopMeasure; readonly filter: TopFilter; readonly most: number }
  | { readonly kind: 'look'; readonly of: TopSpan; readonly keys: readonly string[] };

/** What it tells. */
export interface TopReport {
  readonly rows: readonly TopRow[];
  readonly about: TopSpanSummary;
}

/** Asks all processes that decide; those that do not answer are left out. */
export type RequestTop = (ask: TopRequest) => Promise<readonly TopReport[]>;

/** What a process tells, in steps; '' is a pause. */
export function* topSteps(top: TopBuckets, ask: TopRequest): Generator<'', TopReport> {
  const isRank = ask.kind === 'rank';
  const rows = yield* isRank ? top.rank(ask.by, ask.filter, ask.most) : top.look(ask.of, ask.keys);
  return { rows, about: top.about(isRank ? ask.filter.of : ask.of) };
}
