/*
 * Types and helpers for cases. A case is data: policy text, requests and expected answers. Values that are the same in
 * nearly every case have a default, so that a case shows only what it tests.
 */
/** Units as in policies, with their seconds. */
export const UNIT_SECONDS = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
} as const;
export type Unit = keyof typeof UNIT_SECONDS;

/** One expected descriptor status. */
export interface Status {
  readonly over: boolean;
  /** `5/hour`, or undefined without `current_limit`. */
  readonly limit: string | undefined;
  readonly name: string;
  readonly remaining: number;
}

/** Returns an OK status with a limit, such as `5/hour`, and its remaining hits. */
export function ok(limit: string, remaining: number, name = ''): Status {
  return { over: false, limit, name, remaining };
}

/** Returns an OVER_LIMIT status with a limit and 0 remaining. */
export function over(limit: string, name = ''): Status {
  return { over: true, limit, name, remaining: 0 };
}

/** OK because no rule matches. */
export const NONE: Status = { over: false, limit: undefined, name: '', remaining: 0 };
/** OK because the rule is unlimited. */
export const UNLIMITED: Status = { over: false, limit: undefined, name: '', remaining: 2 ** 32 - 1 };

/** A descriptor with more fields than entries. */
export interface Asked {
  readonly entries: string | readonly (readonly [key: string, value: string])[];
  /** Hits addend of the descriptor. */
  readonly hits?: number;
  /** Override, such as `10/hour`. */
  readonly limit?: string;
  /** is_negative_hits. */
  readonly negative?: boolean;
}

/** Entries `key=value`, separated by spaces; a key alone has the empty value. */
export type Ask = string | Asked;

export interface Answer {
  readonly statuses?: readonly Status[];
  /** Default: OVER_LIMIT if one of the statuses is. */
  readonly overall?: 'OK' | 'OVER_LIMIT';
  /**
   * Response headers in order. `<reset>` represents the seconds until the window of `resetOf` ends, within the duration
   * of the call. Default: none.
   */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly metadata?: unknown;
  /** The call fails with this text and this code. */
  readonly error?: { readonly code: number; readonly text: string | RegExp };
}

/** One gRPC call, or several equal ones. */
export interface CallStep {
  readonly ask: Ask | readonly Ask[];
  /** Default: the domain of the case. */
  readonly domain?: string;
  /** Hits addend of the request. */
  readonly hits?: number;
  /** Number of times that the same call is made; every answer is the expected one. Default: 1. */
  readonly times?: number;
  /** Expected answer of both servers. An array is short for `{ statuses }`. */
  readonly get: Answer | readonly Status[];
  /** Answer of the reference if it differs; only with `differs` in the case. */
  readonly reference?: Answer | readonly Status[];
}

/** One HTTP request. */
export interface HttpStep {
  readonly http: string;
  readonly port?: 'http' | 'debug';
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** `<domain>` in the body is replaced by the domain of the case. */
  readonly body?: string;
  readonly status: number;
  /** Expected text: exact, or a pattern. `<domain>` as above. */
  readonly text?: string | RegExp;
  /** Expected JSON; `<reset>` represents the whole seconds until `resetOf` of the case ends, followed by `s`. */
  readonly json?: unknown;
  readonly type?: string;
  /** Lines that the answer must contain, in any order, among others. */
  readonly lines?: readonly string[];
  readonly reference?: Partial<Pick<HttpStep, 'status' | 'text' | 'json' | 'type' | 'lines'>>;
}

/** One gRPC health check. */
export interface HealthStep {
  readonly health: string;
  /** A serving status, or the gRPC code of a failure. */
  readonly is: 'SERVING' | 'NOT_SERVING' | number;
  readonly reference?: 'SERVING' | 'NOT_SERVING' | number;
}

export type Step = CallStep | HttpStep | HealthStep;

export interface ReferenceCase {
  /** The tested behaviour, as a sentence. Unique in its group. */
  readonly name: string;
  /** Descriptors of the case's domain as YAML, below `descriptors:`; without them, the case has no policy. */
  readonly rules?: string;
  /** Further files, by path below the configuration directory; `<domain>` is replaced by the case's domain. */
  readonly files?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
  /** Every counter of the domain that is not 0, below `ratelimit.service.rate_limit.<domain>.`. */
  readonly stats?: Readonly<Record<string, number>>;
  /** Increases of further counters, by their full name. */
  readonly counters?: Readonly<Record<string, number>>;
  /** Unit of the window that `<reset>` refers to. Default: the only unit in the rules. */
  readonly resetOf?: Unit;
  /** The reason why weir deliberately answers differently; the steps then contain the reference's answers, too. */
  readonly differs?: string;
  /** Statistics of the reference if they differ, too. */
  readonly referenceStats?: Readonly<Record<string, number>>;
  /** Set if the reference crashes in this case, or its answer cannot be checked; `differs` gives the reason. */
  readonly notReference?: true;
}

/** Returns calls that use up a limit: `max` answers of OK, then one OVER_LIMIT. */
export function drain(ask: Ask, limit: string, name = ''): CallStep[] {
  const max = Number(limit.split('/')[0]);
  return [
    ...Array.from({ length: max }, (_, used): CallStep => ({ ask, get: [ok(limit, max - 1 - used, name)] })),
    { ask, get: [over(limit, name)] },
  ];
}
