import type { Rate } from '../../limiter/rate.js';
import type { HeaderFamilies, Rule } from '../../policy/rule.js';
import { isSoft, type MatchedTake } from '../request-context.js';
import {
  type DecidedTake,
  type DescribedLimit,
  familiesOf,
  isDecided,
  passesAfter,
  resetSeconds,
} from './denial.js';

/** Maximum number of limits in one answer: a request may match thousands, and Envoy rejects long headers. */
export const MAX_LISTED = 16;

/** The part of a limit's header values that does not depend on the request. */
interface QuotaPolicy {
  readonly rate: Rate;
  readonly seconds: number;
  /** For draft-03, such as `10;w=1`. That draft has no unit for concurrent requests, so a comment names them. */
  readonly quota: string;
  /** For draft-11, such as `"burst";q=10;w=1` or `"exports";q=10;qu="concurrent-requests"`. */
  readonly item: string;
}

interface LimitName {
  /** Name of the limit in headers and bodies, in ASCII. */
  readonly name: string;
  /** The name as a String of structured fields (RFC 9651 section 3.3.3), with quotes. */
  readonly quoted: string;
  policy: QuotaPolicy | undefined;
}

/**
 * Percent-encodes the UTF-8 bytes of all characters except visible ASCII and spaces, for example `%C3%A4`: a String of
 * structured fields cannot contain them.
 */
function asciiName(name: string): string {
  return name.replaceAll(/[^ -~]+/g, (rest) =>
    [...Buffer.from(rest)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
}

function named(text: string): LimitName {
  const name = asciiName(text);
  return { name, quoted: `"${name.replaceAll(/["\\]/g, '\\$&')}"`, policy: undefined };
}

/** All limit overrides share one name, because callers choose them. */
const OVERRIDE = named('override');
const namedRules = new WeakMap<Rule, LimitName>();
const pathsOfRules = new WeakMap<Rule, LimitName>();

/** The name is computed once, and freed together with the rule. */
function cachedName(known: WeakMap<Rule, LimitName>, rule: Rule, text: string): LimitName {
  let names = known.get(rule);
  if (names === undefined) {
    names = named(text);
    known.set(rule, names);
  }
  return names;
}

function namesOf({ rule }: MatchedTake): LimitName {
  if (rule === undefined) return OVERRIDE;
  return cachedName(namedRules, rule, rule.name === '' ? rule.path : rule.name);
}

/**
 * Returns the name of a limit in headers and bodies: the rule's name or, without one, its path; `override` for a limit
 * override.
 */
export function quotaName(take: MatchedTake): string {
  return namesOf(take).name;
}

/**
 * Returns the header values of a limit. They are computed once per rule, and again when a calendar window has a
 * different length. Each override has its own rate.
 */
function policyOf(names: LimitName, rate: Rate, wallMicros: number): QuotaPolicy {
  const known = names.policy;
  if (known?.rate === rate && rate.hasFixedPeriod) return known;
  const seconds = rate.periodSeconds(wallMicros);
  if (known?.rate === rate && known.seconds === seconds) return known;
  const limit = rate.reportedLimit;
  const isConcurrency = rate.kind === 'concurrency';
  const quota = isConcurrency ? `${limit};comment="concurrent requests"` : `${limit};w=${seconds}`;
  const unit = isConcurrency ? 'qu="concurrent-requests"' : `w=${seconds}`;
  const policy = { rate, seconds, quota, item: `${names.quoted};q=${limit};${unit}` };
  names.policy = policy;
  return policy;
}

/** A limit of a request in the header fields. */
interface ListedLimit {
  readonly names: LimitName;
  take: DecidedTake;
}

function isTighter(take: DecidedTake, other: DecidedTake): boolean {
  if (take.outcome.overLimit !== other.outcome.overLimit) return take.outcome.overLimit;
  if (take.outcome.overLimit) return passesAfter(take) > passesAfter(other);
  return take.outcome.remaining < other.outcome.remaining;
}

function findListed(list: readonly ListedLimit[], rule: Rule | undefined): ListedLimit | undefined {
  for (let i = 0; i < list.length; i++) if ((list[i] as ListedLimit).take.rule === rule) return list[i];
  return undefined;
}

/**
 * Returns the limits of a request for which `isShown` holds, in order. If a rule has two buckets, the result contains
 * only the tighter bucket. If two rules have the same name, the result contains the path of the second rule instead.
 * Returns at most {@link MAX_LISTED} limits, and always the described limit.
 */
function listedLimits(
  described: DescribedLimit,
  isShown: (take: MatchedTake) => boolean,
): readonly ListedLimit[] {
  const list: ListedLimit[] = [];
  for (let i = 0; i < described.takes.length; i++) {
    const take = described.takes[i] as MatchedTake;
    const { rule } = take;
    if (!isDecided(take) || isHidden(take, described) || !isShown(take)) continue;
    const known = findListed(list, rule);
    if (known !== undefined) {
      if (isTighter(take, known.take)) known.take = take;
      continue;
    }
    // Skipped before computing the name: a request may match thousands of limits.
    if (list.length === MAX_LISTED && take !== described.take) continue;
    let names = namesOf(take);
    if (rule !== undefined && list.some((other) => other.names.name === names.name)) {
      names = cachedName(pathsOfRules, rule, rule.path);
    }
    if (list.length < MAX_LISTED) list.push({ names, take });
    else list[MAX_LISTED - 1] = { names, take };
  }
  return list;
}

/** The values of `ratelimit-policy` and `ratelimit`. */
export interface QuotaFields {
  readonly policies: string;
  readonly quotas: string;
}

/** Returns whether lists omit a limit: a soft one next to others, because callers need not slow down for it. */
function isHidden(take: MatchedTake, described: DescribedLimit): boolean {
  return isSoft(take) && take !== described.take;
}

/** Returns whether a limit appears in {@link quotaFields}. */
function isListed(take: MatchedTake, domainFamilies: HeaderFamilies | undefined, upstream: boolean): boolean {
  return take.outcome !== undefined && familiesOf(take, domainFamilies, upstream)?.rateLimit === true;
}

/** Returns whether any limit that applied appears in {@link quotaFields}. */
export function wantsQuotaFields(
  described: DescribedLimit,
  domainFamilies: HeaderFamilies | undefined,
  upstream: boolean,
): boolean {
  for (let i = 0; i < described.takes.length; i++) {
    const take = described.takes[i] as MatchedTake;
    if (!isHidden(take, described) && isListed(take, domainFamilies, upstream)) return true;
  }
  return false;
}

/**
 * Returns both header fields of draft-ietf-httpapi-ratelimit-headers-11, with an item for every limit whose rule
 * requests them.
 */
export function quotaFields(
  described: DescribedLimit,
  domainFamilies: HeaderFamilies | undefined,
  upstream: boolean,
): QuotaFields {
  const { wallMicros } = described.context;
  let policies = '';
  let quotas = '';
  for (const { names, take } of listedLimits(described, (one) => isListed(one, domainFamilies, upstream))) {
    const separator = policies === '' ? '' : ', ';
    policies += separator + policyOf(names, take.rate, wallMicros).item;
    const seconds = resetSeconds(take);
    // A full bucket has no next token.
    const until = seconds !== undefined && seconds > 0 ? `;t=${seconds}` : '';
    quotas += `${separator}${names.quoted};r=${take.outcome.remaining}${until}`;
  }
  return { policies, quotas };
}

/**
 * Returns the value of `ratelimit-limit` in draft-03: the described limit, followed by the policy of every limit whose
 * rule requests it.
 */
export function draft03Limit(
  described: DescribedLimit,
  domainFamilies: HeaderFamilies | undefined,
  upstream: boolean,
): string {
  const { wallMicros } = described.context;
  let value = String(described.take.rate.reportedLimit);
  for (const { names, take } of listedLimits(
    described,
    (one) => familiesOf(one, domainFamilies, upstream)?.rateLimitDraft03 === true,
  )) {
    value += `, ${policyOf(names, take.rate, wallMicros).quota}`;
  }
  return value;
}
