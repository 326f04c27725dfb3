/*
 * The words that cases are written in. A case is data: policy text, requests, and what is answered. Values that are the
 * same in nearly every case have a default, so that a case shows what it is about.
 */
/** Units as policies name them, with their seconds. */
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

/** OK with a limit, such as `5/hour`, and what is left of it. */
export function ok(limit: string, remaining: number, name = ''): Status {
  return { over: false, limit, name, remaining };
}

/** OVER_LIMIT with a limit; nothing is left. */
export function over(limit: string, name = ''): Status {
  return { over: true, limit, name, remaining: 0 };
}

/** OK because no rule matched. */
export const NONE: Status = { over: false, limit: undefined, name: '', remaining: 0 };
/** OK because the rule is unlimited. */
export const UNLIMITED: Status = { over: false, limit: undefined, name: '', remaining: 2 ** 32 - 1 };

/** A descriptor with more than entries. */
export interface Asked {
  readonly entries: string | readonly (readonly [key: string, value: string])[];
  /** Hits addend of the descriptor. */
  readonly hits?: number;
  /** Override, such as `10/hour`. */
  readonly limit?: string;
  /** is_negative_hits. */
  readonly negative?: boolean;
}

/** Entries `key=value` with a space between them; a key alone has the empty value. */
export type Ask = string | Asked;

export interface Answer {
  readonly statuses?: readonly Status[];
  /** Default: OVER_LIMIT if a status is. */
  readonly overall?: 'OK' | 'OVER_LIMIT';
  /**
   * Response headers in order. `<reset>` stands for the seconds until the window of `resetOf` ends, give or take the
   * time that the call took. Default: none.
   */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly metadata?: unknown;
  /** The call fails with this text and one of these codes. */
  readonly error?: { readonly code: number; readonly text: string | RegExp };
}

/** One gRPC call, or several equal ones. */
export interface CallStep {
  readonly ask: Ask | readonly Ask[];
  /** Default: the domain of the case. */
  readonly domain?: string;
  /** Hits addend of the request. */
  readonly hits?: number;
  /** How often the same call is made; every answer is the expected one. Default 1. */
  readonly times?: number;
  /** Expected from both. An array stands for `{ statuses }`. */
  readonly get: Answer | readonly Status[];
  /** What the reference answers instead: only with `differs` in the case. */
  readonly reference?: Answer | readonly Status[];
}

/** One HTTP request. */
export interface HttpStep {
  readonly http: string;
  readonly port?: 'http' | 'debug';
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The domain of the case stands for `<domain>` in it. */
  readonly body?: string;
  readonly status: number;
  /** Expected text: exactly, or a pattern. `<domain>` as above. */
  readonly text?: string | RegExp;
  /** Expected JSON; `<reset>` stands for the whole seconds until `resetOf` of the case ends, with an `s`. */
  readonly json?: unknown;
  readonly type?: string;
  /** Lines that must be there, in any order, among others. */
  readonly lines?: readonly string[];
  readonly reference?: Partial<Pick<HttpStep, 'status' | 'text' | 'json' | 'type' | 'lines'>>;
}

/** One gRPC health check. */
export interface HealthStep {
  readonly health: string;
  /** A serving status, or a gRPC code of failure. */
  readonly is: 'SERVING' | 'NOT_SERVING' | number;
  readonly reference?: 'SERVING' | 'NOT_SERVING' | number;
}

export type Step = CallStep | HttpStep | HealthStep;

export interface ReferenceCase {
  /** What is shown, as a sentence. Unique in its group. */
  readonly name: string;
  /** Descriptors of the case's domain as YAML, below `descriptors:`; none: the case has no policy of its own. */
  readonly rules?: string;
  /** Further files, by path below the configuration directory; `<domain>` stands for the case's domain. */
  readonly files?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
  /** Every counter of the domain that is not 0, below `ratelimit.service.rate_limit.<domain>.`. */
  readonly stats?: Readonly<Record<string, number>>;
  /** Growth of further counters, by their whole name. */
  readonly counters?: Readonly<Record<string, number>>;
  /** Unit of the window that `<reset>` is about. Default: the only unit in the rules. */
  readonly resetOf?: Unit;
  /** Why weir answers otherwise on purpose; the steps then say what the reference answers. */
  readonly differs?: string;
  /** Statistics of the reference where they differ, too. */
  readonly referenceStats?: Readonly<Record<string, number>>;
  /** The reference does not survive this case, or it has no answer that could be checked: said in `differs`. */
  readonly notReference?: true;
}

/** Calls that use up a limit: `max` answers OK, then one OVER_LIMIT. */
export function drain(ask: Ask, limit: string, name = ''): CallStep[] {
  const max = Number(limit.split('/')[0]);
  return [
    ...Array.from({ length: max }, (_, used): CallStep => ({ ask, get: [ok(limit, max - 1 - used, name)] })),
    { ask, get: [over(limit, name)] },
  ];
}
