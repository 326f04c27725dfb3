/*
 * Checks that answers have the shape that the page reads. A server of another version may answer differently, and an
 * unchecked answer would fail inside a view.
 */

type Shape = (value: unknown) => boolean;

const number: Shape = (value) => typeof value === 'number' && Number.isFinite(value);
const text: Shape = (value) => typeof value === 'string';
const flag: Shape = (value) => typeof value === 'boolean';
const listOf =
  (shape: Shape): Shape =>
  (value) =>
    Array.isArray(value) && value.every(shape);
const either =
  (wanted: unknown, shape: Shape): Shape =>
  (value) =>
    value === wanted || shape(value);
const object =
  (members: Readonly<Record<string, Shape>>): Shape =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(members).every(([name, shape]) => shape((value as Record<string, unknown>)[name]));

const series = object({ ok: listOf(number), denied: listOf(number), would: listOf(number) });
const FAILURES = ['errors', 'failure_allow', 'failure_deny', 'failure_local'] as const;
const rates = object({ ok: number, denied: number, would: number });
const allSeries: Shape = (value) =>
  series(value) && object(Object.fromEntries(FAILURES.map((name) => [name, listOf(number)])))(value);
const entries = listOf(object({ key: text, value: text }));
const numbers = (...names: readonly string[]): Readonly<Record<string, Shape>> =>
  Object.fromEntries(names.map((name) => [name, number]));

const time = either(null, number);
const level = either(
  undefined,
  object({
    ...numbers('left', 'debt'),
    ...{ next_token_in: time, full_in: time, in_flight: either(undefined, number) },
  }),
);
const holds = object({
  list: listOf(object({ id: text, ...numbers('amount', 'age', 'ends_in') })),
  more: number,
});
const optionalText = either(undefined, text);
const phase = object({ now: text, grace_period: optionalText, active: optionalText });

const caller = object({ by: text, right: text });
const overview = object({
  version: text,
  ...numbers('now', 'uptime_seconds'),
  health: object({ status: text }),
  store: object({
    name: text,
    up: flag,
    nodes: listOf(
      object({
        ...{ redis: text, node: text },
        ...numbers('up', 'of'),
        latency_ms: either(null, number),
      }),
    ),
  }),
  workers: listOf(object({ ...numbers('id', 'pid'), status: text, store_up: flag })),
  policy: object({
    version: text,
    domains: listOf(object({ domain: text, state: text, files: listOf(text) })),
    reload: object({ result: text, at: number }),
    errors: listOf(text),
    ...numbers('more_domains', 'more_errors'),
  }),
  keeps: object(numbers('top', 'history')),
});

/** Shapes by the path of a question, or by the type of a stream event. */
const SHAPES: Readonly<Record<string, Shape>> = {
  caller,
  overview,
  point: object(numbers('ends', 'ok', 'denied', 'would', ...FAILURES)),
  buckets: object({
    ...{ meets: text, store: text, domain: text, entries, notes: listOf(text), more: number },
    buckets: listOf(
      object({
        ...{ rule: text, name: text, limit: number, about: text, enforcement: text, entries },
        ...{ redis_key: either(null, text), redis_slot: either(null, number) },
        ...{ now: level, before: level, note: optionalText, holds: either(undefined, holds) },
      }),
    ),
  }),
  'rlconfig?format=json': object({
    domains: listOf(
      object({
        ...{ domain: text, state: text, files: listOf(text) },
        policy: either(
          undefined,
          object({
            ...{ phase, on_store_failure: text, on_unmatched: text },
            derive: listOf(object({ step: text, rules: either(undefined, listOf(text)) })),
            rules: listOf(
              object({
                ...{ path: text, name: text, keys: listOf(text), limit: object({}), phase },
                ...{ shadow_mode: flag, quota_mode: flag, enforce_percent: number },
                ...{ replaces: listOf(text), on_store_failure: text },
              }),
            ),
          }),
        ),
      }),
    ),
  }),
  history: object({
    ...numbers('step', 'ends'),
    all: either(undefined, allSeries),
    sums: either(undefined, listOf(object({ domain: text, rule: text, minute: rates, hour: rates }))),
    series: either(undefined, listOf(either(null, series))),
  }),
  top: object({
    by: text,
    of: text,
    ...numbers('covers', 'sampled'),
    error: object(numbers('denied', 'used')),
    top: listOf(
      object({
        ...{ domain: text, rule: text, entries, limit: either(undefined, text) },
        ...numbers('denied', 'denied_error', 'used', 'used_error'),
        // JSON cannot represent infinity.
        used_ratio: either(null, number),
      }),
    ),
  }),
};

/** Returns whether the page can use the answer to a question at `path`, or an event with this name. */
export function isUsable(path: string, answer: unknown): boolean {
  return SHAPES[path]?.(answer) ?? true;
}
