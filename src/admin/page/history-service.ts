import { RenderQueue } from '../../http/text-view.js';
import type { Clock } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import { Signal } from '../../runtime/signal.js';
import { type FailureCounts, RateHistory, STEP_SECONDS } from '../../telemetry/history/rate-history.js';
import type { RateCounts } from '../../telemetry/rule-series.js';
import type { AdminAnswer, AdminService } from '../admin-access.js';
import type {
  AllSeries,
  HistoryAnswer,
  HistoryPoint,
  HistoryQuestion,
  HistoryRule,
  RateSeries,
  RuleSums,
} from './messages.js';

/**
 * Passes the decisions that all processes made since the previous call to `take`. Resolves with the number of requests
 * that the store could not decide. Processes that do not answer report their decisions with a later call.
 */
export type CollectRates = (take: (counts: RateCounts) => void) => Promise<FailureCounts>;

const STEP_MICROS = STEP_SECONDS * 1e6;

/** Decisions of the last hour, and the end of the last step. */
interface RecordedHistory {
  readonly history: RateHistory;
  /** Monotonic, in microseconds. */
  readonly endedMicros: number;
  onStep(listener: () => void): void;
}

/**
 * Records the decisions that `rates` returns in steps, for up to `maxRules` rules (HISTORY_RULES) and for all rules
 * together.
 */
export function recordHistory(
  maxRules: number,
  clock: Clock,
  rates: CollectRates,
  onError: (error: unknown) => void,
  closers: Closers,
): RecordedHistory {
  const history = new RateHistory(maxRules);
  const stepped = new Signal();
  let endedMicros = clock.monotonicMicros();
  let counting = false;
  const count = async (): Promise<void> => {
    if (counting) return;
    counting = true;
    try {
      history.addFailures(await rates((counts) => history.add(counts)));
      const now = clock.monotonicMicros();
      // If this process could not run for some time, as on a suspended machine, steps without counts follow.
      history.end(Math.round((now - endedMicros) / STEP_MICROS));
      endedMicros = now;
      stepped.emit();
    } catch (error) {
      onError(error);
    } finally {
      counting = false;
    }
  };
  const timer = setInterval(() => void count(), STEP_SECONDS * 1000);
  timer.unref();
  closers.add(async () => clearInterval(timer));
  return {
    history,
    get endedMicros() {
      return endedMicros;
    },
    onStep: stepped.add,
  };
}

/** Maximum number of rules in a question. */
export const MAX_HISTORY_RULES = 50;

export interface HistoryServiceOptions {
  readonly recorded: RecordedHistory;
  readonly clock: Clock;
}

/** In seconds since the epoch, rounded to milliseconds. */
function lastStepEnd({ recorded, clock }: HistoryServiceOptions): number {
  const agoMicros = clock.monotonicMicros() - recorded.endedMicros;
  return Math.round((clock.wallMicros() - agoMicros) / 1000) / 1000;
}

/** Three digits are more than a chart can show. */
function perSecond(count: number): number {
  return Math.round((count / STEP_SECONDS) * 1000) / 1000;
}

function mapValues<Key extends string, From, To>(
  values: Readonly<Record<Key, From>>,
  to: (value: From) => To,
): Record<Key, To> {
  const mapped = Object.entries<From>(values).map(([key, value]) => [key, to(value)]);
  return Object.fromEntries(mapped) as Record<Key, To>;
}

/** The last step of all rules, as rates per second. */
export function lastPoint(options: HistoryServiceOptions): HistoryPoint {
  return { ends: lastStepEnd(options), ...mapValues({ ...options.recorded.history.lastStep() }, perSecond) };
}

function allSeries(history: RateHistory): AllSeries {
  return mapValues(history.allRows(), (row) => row.map(perSecond));
}

function seriesOf(history: RateHistory, rule: HistoryRule): RateSeries | null {
  const rows = history.rows(rule);
  return rows === undefined ? null : mapValues(rows, (row) => row.map(perSecond));
}

/** Validates a question. Returns a sentence if it is invalid. */
function readHistoryQuestion(asked: unknown): HistoryQuestion | string {
  if (typeof asked !== 'object' || asked === null || Array.isArray(asked)) {
    return 'the body must be a JSON object, such as {} or {"rules":[{"domain":"d","rule":"tenant"}]}';
  }
  const unknown = Object.keys(asked).find((name) => name !== 'rules');
  if (unknown !== undefined)
    return `${JSON.stringify(unknown.slice(0, 100))} is not a valid field; the only field is rules`;
  const { rules } = asked as { readonly rules?: unknown };
  if (rules === undefined) return {};
  if (!Array.isArray(rules) || !rules.every(isRule))
    return 'rules must be a list of objects, each with the string fields domain and rule';
  if (rules.length > MAX_HISTORY_RULES) return `rules must have at most ${MAX_HISTORY_RULES} items`;
  return { rules };
}

function isRule(one: unknown): one is HistoryRule {
  const { domain, rule } = Object(one) as Record<string, unknown>;
  return typeof domain === 'string' && typeof rule === 'string';
}

/**
 * Returns the service of `/history` on the debug port, with the decisions of the last hour. All pages ask when a step
 * ends. The common part of their answers is computed once.
 */
export function historyService(options: HistoryServiceOptions): AdminService {
  const { recorded } = options;
  const { history } = recorded;
  const queue = new RenderQueue();
  const about = () => ({ step: STEP_SECONDS, ends: lastStepEnd(options), crowded: history.hadTooManyRules });
  let whole: { readonly endedMicros: number; readonly answer: Promise<HistoryAnswer> } | undefined;
  const tellWhole = (): Promise<HistoryAnswer> => {
    const { endedMicros } = recorded;
    if (whole?.endedMicros !== endedMicros) {
      const answer = queue.run(() => ({ ...about(), all: allSeries(history), sums: ruleSums(history) }));
      whole = { endedMicros, answer };
    }
    return whole.answer;
  };
  const tellRules = (rules: readonly HistoryRule[]): HistoryAnswer => ({
    ...about(),
    series: rules.map((rule) => seriesOf(history, rule)),
  });
  return {
    path: '/history',
    help: 'allowed, denied and refused requests in the last hour, in total and for each rule: POST {}',
    rightFor: () => 'read',
    async answer(asked): Promise<AdminAnswer> {
      const question = readHistoryQuestion(asked);
      if (typeof question === 'string') return { status: 400, body: { error: question } };
      const { rules } = question;
      const told = rules === undefined ? tellWhole() : queue.run(() => tellRules(rules));
      return { status: 200, body: await told };
    },
  };
}

function ruleSums(history: RateHistory): readonly RuleSums[] {
  return history
    .sums()
    .sort(
      ({ hour: one }, { hour: other }) =>
        other.denied - one.denied || other.would - one.would || other.ok - one.ok,
    );
}
