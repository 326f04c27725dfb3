import type { Rate } from '../../limiter/rate.js';
import type { HeaderFamilies, Rule } from '../../policy/rule.js';
import type { PlannedTake } from '../plan.js';
import { type DecidedTake, isDecided, passesAfter } from './denial.js';
import { type DescribedLimit, resetSeconds } from './described-limit.js';

/** Most limits that one answer lists: a request may meet thousands, and Envoy refuses long headers. */
export const MAX_LISTED = 16;

/** What the fields of the drafts say of a limit that does not change from request to request. */
interface QuotaPolicy {
  readonly rate: Rate;
  readonly seconds: number;
  /** `10;w=1`. */
  readonly quota: string;
  /** `"burst";q=10;w=1`. */
  readonly item: string;
}

interface LimitName {
  /** Name of the limit in fields and bodies; plain ASCII. */
  readonly name: string;
  /** The same as a String of structured fields (RFC 9651 section 3.3.3), quotes included. */
  readonly quoted: string;
  policy: QuotaPolicy | undefined;
}

/** Strings of structured fields hold visible ASCII and spaces: the UTF-8 bytes of all else are written as `%C3%A4`. */
function asciiName(name: string): string {
  return name.replaceAll(/[^ -~]+/g, (rest) =>
    [...Buffer.from(rest)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
}

function named(text: string): LimitName {
  const name = asciiName(text);
  return { name, quoted: `"${name.replaceAll(/["\\]/g, '\\$&')}"`, policy: undefined };
}

/** Limit overrides come from callers, each with a rate of its own. */
const OVERRIDE = named('override');
const namedRules = new WeakMap<Rule, LimitName>();
const pathsOfRules = new WeakMap<Rule, LimitName>();

/** Computed once per rule, and gone with it. */
function cachedName(known: WeakMap<Rule, LimitName>, rule: Rule, text: string): LimitName {
  let names = known.get(rule);
  if (names === undefined) {
    names = named(text);
    known.set(rule, names);
  }
  return names;
}

function namesOf({ rule }: PlannedTake): LimitName {
  if (rule === undefined) return OVERRIDE;
  return cachedName(namedRules, rule, rule.name === '' ? rule.path : rule.name);
}

/** The name of a limit in fields and bodies: the rule's name, else its path; `override` for a limit of the caller. */
export function quotaName(take: PlannedTake): string {
  return namesOf(take).name;
}

/**
 * Computed once per rule, and again when a window of a calendar has another length; overrides have a rate of their own
 * each time.
 */
function policyOf(names: LimitName, rate: Rate, wallMicros: number): QuotaPolicy {
  const known = names.policy;
  if (known?.rate === rate && rate.hasFixedPeriod) return known;
  const seconds = rate.periodSeconds(wallMicros);
  if (known?.rate === rate && known.seconds === seconds) return known;
  const limit = rate.reportedLimit;
  const quota = `${limit};w=${seconds}`;
  const policy = { rate, seconds, quota, item: `${names.quoted};q=${quota}` };
  names.policy = policy;
  return policy;
}

/** One limit of a request as fields list it. */
interface ListedLimit {
  readonly names: LimitName;
  take: DecidedTake;
}

/** Whether `one` leaves less room than `than`. */
function isTighter(take: DecidedTake, other: DecidedTake): boolean {
  if (take.outcome.limited !== other.outcome.limited) return take.outcome.limited;
  if (take.outcome.limited) return passesAfter(take) > passesAfter(other);
  return take.outcome.remaining < other.outcome.remaining;
}

function findListed(list: readonly ListedLimit[], rule: Rule | undefined): ListedLimit | undefined {
  for (let i = 0; i < list.length; i++) if ((list[i] as ListedLimit).take.rule === rule) return list[i];
  return undefined;
}

/**
 * The limits of a request for which `isShown` holds, in order, each name once: of two buckets of one rule the tighter.
 * A rule whose name another has already stands with its path. At most {@link MAX_LISTED}, the described one always
 * among them.
 */
function listedLimits(
  described: DescribedLimit,
  isShown: (take: PlannedTake) => boolean,
): readonly ListedLimit[] {
  const list: ListedLimit[] = [];
  for (let i = 0; i < described.takes.length; i++) {
    const take = described.takes[i] as PlannedTake;
    const { rule } = take;
    if (!isDecided(take) || !isShown(take)) continue;
    const known = findListed(list, rule);
    if (known !== undefined) {
      if (isTighter(take, known.take)) known.take = take;
      continue;
    }
    // Of thousands that are not listed, nobody needs the names.
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

/**
 * The families in force for a take: those of its rule, else those of the file. `upstream` asks for those of the request
 * instead of the response.
 */
export function familiesOf(
  { rule }: PlannedTake,
  domainFamilies: HeaderFamilies | undefined,
  upstream: boolean,
): HeaderFamilies | undefined {
  return (upstream ? rule?.requestHeaders : rule?.responseHeaders) ?? domainFamilies;
}

/** The values of `ratelimit-policy` and `ratelimit`. */
export interface QuotaFields {
  readonly policies: string;
  readonly quotas: string;
}

/** Whether a limit that applied is listed in the fields of {@link quotaFields}. */
function isListed(take: PlannedTake, domainFamilies: HeaderFamilies | undefined, upstream: boolean): boolean {
  return take.outcome !== undefined && familiesOf(take, domainFamilies, upstream)?.rateLimit === true;
}

/** Whether the rule of any limit that applied asks for the fields of {@link quotaFields}. */
export function wantsQuotaFields(
  { takes }: DescribedLimit,
  domainFamilies: HeaderFamilies | undefined,
  upstream: boolean,
): boolean {
  for (let i = 0; i < takes.length; i++) {
    if (isListed(takes[i] as PlannedTake, domainFamilies, upstream)) return true;
  }
  return false;
}

/** Both fields of draft-ietf-httpapi-ratelimit-headers-11, with an item for every limit whose rule asks for them. */
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
    // A full bucket gets no more.
    const until = seconds > 0 ? `;t=${seconds}` : '';
    quotas += `${separator}${names.quoted};r=${take.outcome.remaining}${until}`;
  }
  return { policies, quotas };
}

/**
 * The value of `ratelimit-limit` in draft-03: the limit described, then the policy of every limit whose rule asks for
 * it.
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
