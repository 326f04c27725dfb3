import { randomUUID } from 'node:crypto';
import { RenderQueue } from '../../http/text-view.js';
import type { Entry } from '../../limiter/entry.js';
import type { PolicySet } from '../../policy/compiled-policy.js';
import { isSecretKey, redacted } from '../../policy/redact.js';
import { OVERRIDE_LABEL } from '../../service/request-context.js';
import {
  type BucketDescription,
  type TopBuckets,
  type TopFilter,
  TopK,
  type TopMeasure,
  type TopRow,
  type TopSpan,
  type TopSpanSummary,
} from '../../telemetry/top/top-buckets.js';
import type { AdminAnswer, AdminService } from '../admin-access.js';
import type { TopAnswer, TopBucket, TopQuestion } from '../buckets/messages.js';
import { quotedText, unknownDomain } from '../buckets/read-question.js';

/** A validated question with its defaults. */
export interface CheckedTopQuestion extends TopQuestion {
  readonly by: 'denied' | 'used';
  readonly of: 'minute' | 'hour';
  readonly limit: number;
}

/** Maximum number of buckets in an answer. */
export const MAX_TOP_LIMIT = 1000;
const DEFAULT_LIMIT = 20;
const FIELDS: ReadonlySet<string> = new Set([
  'by',
  'of',
  'domain',
  'rule',
  'limit',
] satisfies (keyof TopQuestion)[]);

/** Validates a question. Returns a sentence if it is invalid. */
function readTopQuestion(asked: unknown): CheckedTopQuestion | string {
  if (typeof asked !== 'object' || asked === null || Array.isArray(asked)) {
    return 'the body must be a JSON object, such as {"by":"denied","of":"minute"}';
  }
  const unknown = Object.keys(asked).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 100));
    return `${shown} is not a valid field; the fields are ${[...FIELDS].join(', ')}`;
  }
  const {
    by = 'denied',
    of = 'minute',
    domain,
    rule,
    limit = DEFAULT_LIMIT,
  } = asked as Record<string, unknown>;
  if (by !== 'denied' && by !== 'used') return 'by must be "denied" or "used"';
  if (of !== 'minute' && of !== 'hour') return 'of must be "minute" or "hour"';
  if (domain !== undefined && typeof domain !== 'string')
    return 'domain must be a string that contains the name of a domain';
  if (rule !== undefined && typeof rule !== 'string') {
    return 'rule must be a string that contains the path of a rule, as shown by weir explain';
  }
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > MAX_TOP_LIMIT) {
    return `limit must be a whole number from 1 to ${MAX_TOP_LIMIT}`;
  }
  return { by, of, limit, ...(domain !== undefined && { domain }), ...(rule !== undefined && { rule }) };
}

/** Each process returns this many times the requested number of buckets, because processes see different callers. */
const OVERSAMPLING = 2;
const LEAST_ASKED = 100;

export interface TopAnswerOptions {
  readonly ask: RequestTop;
  readonly secretKeys: SecretKeyLookup;
}

function order(by: TopMeasure): (one: TopRow, other: TopRow) => number {
  const second = by === 'denied' ? 'used' : 'denied';
  return (one, other) => other[by] - one[by] || other[second] - one[second] || (one.key < other.key ? -1 : 1);
}

function added(one: TopRow, other: TopRow): TopRow {
  return {
    key: one.key,
    about: higherUsed(one.about, other.about),
    denied: one.denied + other.denied,
    deniedError: one.deniedError + other.deniedError,
    used: one.used + other.used,
    usedError: one.usedError + other.usedError,
  };
}

/** Returns the description with the higher used ratio, because it is unknown which process saw the bucket last. */
function higherUsed(
  one: BucketDescription | undefined,
  other: BucketDescription | undefined,
): BucketDescription | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return (one.usedRatio ?? -1) >= (other.usedRatio ?? -1) ? one : other;
}

function sumOf(told: readonly TopReport[], by: TopMeasure, most: number): readonly TopRow[] {
  const sums = new Map<string, TopRow>();
  for (const { rows } of told) {
    for (const row of rows) {
      const sum = sums.get(row.key);
      sums.set(row.key, sum === undefined ? row : added(sum, row));
    }
  }
  const first = new TopK<TopRow>(most, order(by));
  for (const row of sums.values()) first.add(row);
  return first.sorted;
}

/** Answers a question about top buckets. Returns undefined if no process answers. */
async function answerTop(
  { by, of, domain, rule, limit }: CheckedTopQuestion,
  { ask, secretKeys }: TopAnswerOptions,
): Promise<TopAnswer | undefined> {
  const most = Math.max(LEAST_ASKED, OVERSAMPLING * limit);
  let told = await ask({ kind: 'rank', by, filter: { of, domain, rule }, most });
  if (told.length > 1) {
    const first = sumOf(told, by, limit);
    // A process may have counts of a bucket that is not among its own top buckets.
    told = await ask({ kind: 'look', of, keys: first.map(({ key }) => key) });
  }
  if (told.length === 0) return undefined;
  const abouts = told.map(({ about }) => about);
  const sum = (measure: TopMeasure): number => abouts.reduce((all, { error }) => all + error[measure], 0);
  return {
    of,
    by,
    covers: Math.max(...abouts.map(({ coversMicros }) => coversMicros)) / 1e6,
    error: { denied: sum('denied'), used: sum('used') },
    sampled: Math.max(...abouts.map(({ sampled }) => sampled)),
    top: sumOf(told, by, limit).flatMap((row) => shownBucket(row, secretKeys)),
  };
}

function shownBucket(
  { about, denied, deniedError, used, usedError }: TopRow,
  secretKeys: SecretKeyLookup,
): readonly TopBucket[] {
  if (about === undefined) return [];
  const { domain, rule, entries, limit, plan, usedRatio } = about;
  return [
    {
      domain,
      rule,
      entries: redactSecrets(entries, secretKeys(domain)),
      ...(limit !== undefined && { limit }),
      ...(plan !== undefined && { plan }),
      denied,
      denied_error: deniedError,
      used,
      used_error: usedError,
      used_ratio: usedRatio ?? 0,
    },
  ];
}

/** Request to a process that decides: its own top buckets, or its counts of buckets that others named. */
export type TopRequest =
  | { readonly kind: 'rank'; readonly by: TopMeasure; readonly filter: TopFilter; readonly most: number }
  | { readonly kind: 'look'; readonly of: TopSpan; readonly keys: readonly string[] };

/** Counts of a process. */
interface TopReport {
  readonly rows: readonly TopRow[];
  readonly about: TopSpanSummary;
}

/** Collects counts from all processes that decide. Processes that do not answer are left out. */
export type RequestTop = (ask: TopRequest) => Promise<readonly TopReport[]>;

/** The counts of one process, to be added to those of others. */
export function reportTop(top: TopBuckets, ask: TopRequest): TopReport {
  const isRank = ask.kind === 'rank';
  const rows = isRank ? top.rank(ask.by, ask.filter, ask.most) : top.look(ask.of, ask.keys);
  return { rows, about: top.about(isRank ? ask.filter.of : ask.of) };
}

/** Returns the secret keys of a domain in the current policy. */
export type SecretKeyLookup = (domain: string) => ReadonlySet<string>;

const REDACTED = /^\[redacted sha256:[0-9a-f]{8}\]$/;

/** Redacts stored entries again, because a key may have become a secret since the entries were stored. */
export function redactSecrets(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  return entries.map(({ key, value }) => {
    const mayBeShown = !isSecretKey(key, secretKeys) || REDACTED.test(value);
    return { key, value: mayBeShown ? value : redacted(value) };
  });
}

/** Domains of a server that started without a policy. */
const NO_DOMAINS: PolicySet['domains'] = new Map();

interface TopServiceOptions extends TopAnswerOptions {
  /** TOP_BUCKETS. */
  readonly capacity: number;
  policies(): PolicySet | undefined;
}

function failure(status: number, error: string): AdminAnswer {
  return { status, body: { error } };
}

/**
 * Returns the service of `/top` on the debug port. Questions are answered one at a time, so that the memory for an
 * answer is needed only once.
 */
export function topService(options: TopServiceOptions): AdminService {
  const server = randomUUID();
  const queue = new RenderQueue();
  const answer = async (asked: unknown): Promise<AdminAnswer> => {
    const question = readTopQuestion(asked);
    if (typeof question === 'string') return failure(400, question);
    if (options.capacity === 0) {
      return failure(
        503,
        'weir tracks no buckets, because TOP_BUCKETS is 0; unset TOP_BUCKETS, or set TOP_BUCKETS to a ' +
          'number such as 500',
      );
    }
    const body = await queue.run(() => answerTop(question, options));
    if (body === undefined) return failure(503, 'no worker process answers; try again');
    // A domain or rule that was removed from the policies may still have rows of the last hour.
    const unknown = body.top.length > 0 ? undefined : unknownName(question, options.policies());
    return unknown === undefined ? { status: 200, body: { server, ...body } } : failure(400, unknown);
  };
  return {
    path: '/top',
    help: 'the buckets with the most denied requests or used hits; see weir top --help',
    rightFor: () => 'read',
    answer,
  };
}

/**
 * Returns an error if the current policies do not contain a domain or rule of the question, because an answer without
 * rows would suggest that no request was denied. Returns undefined if all names are known.
 */
function unknownName(
  { domain, rule }: Pick<CheckedTopQuestion, 'domain' | 'rule'>,
  policies: PolicySet | undefined,
): string | undefined {
  const domains = policies?.domains ?? NO_DOMAINS;
  const policy = domain === undefined ? undefined : domains.get(domain);
  if (domain !== undefined && policy === undefined) return unknownDomain(domains, domain);
  if (rule === undefined || rule === OVERRIDE_LABEL) return undefined;
  const searched = policy === undefined ? [...domains.values()] : [policy];
  if (searched.some(({ rules }) => rules.some(({ path }) => path === rule))) return undefined;
  const where = domain === undefined ? '' : ` in the domain ${quotedText(domain)}`;
  return `no policy in effect has the rule ${quotedText(rule)}${where}; weir explain shows the path of each rule`;
}
