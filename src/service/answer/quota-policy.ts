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

interface Named {
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

function named(text: string): Named {
  const name = asciiName(text);
  return { name, quoted: `"${name.replaceAll(/["\\]/g, '\\$&')}"`, policy: undefined };
}

/** Limit overrides come from callers, each with a rate of its own. */
const OVERRIDE = named('override');
const namedRules = new WeakMap<Rule, Named>();
const pathsOfRules = new WeakMap<Rule, Named>();

/** Computed once per rule, and gone with it. */
function remembered(known: WeakMap<Rule, Named>, rule: Rule, text: string): Named {
  let names = known.get(rule);
  if (names === undefined) {
    names = named(text);
    known.set(rule, names);
  }
  return names;
}

function namesOf({ rule }: PlannedTake): Named {
  if (rule === undefined) return OVERRIDE;
  return remembered(namedRules, rule, rule.name === '' ? rule.path : rule.name);
}

/** The name of a limit in fields and bodies: the rule's name, else its path; `override` for a limit of the caller. */
export function quotaName(take: PlannedTake): string {
  return namesOf(take).name;
}

/**
 * Computed once per rule, and again when a window of a calendar has another length; overrides have a rate of their own
 * each time.
 */
function policyOf(names: Named, rate: Rate, wallMicros: number): QuotaPolicy {
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
interface Listed {
  readonly names: Named;
  take: DecidedTake;
}

/** Whether `one` leaves less room than `than`. */
function isTighter(one: DecidedTake, than: DecidedTake): boolean {
  if (one.outcome.limited !== than.outcome.limited) return one.outcome.limited;
  if (one.outcome.limited) return passesAfter(one) > passesAfter(than);
  return one.outcome.remaining < than.outcome.remaining;
}

function listedOf(list: readonly Listed[], rule: Rule | undefined): Listed | undefined {
  for (let i = 0; i < list.length; i++) if ((list[i] as Listed).take.rule === rule) return list[i];
  return undefined;
}

/**
 * The limits of a request for which `isShown` holds, in order, each name once: of two buckets of one rule the tighter.
 * A rule whose name another has already stands with its path. At most {@link MAX_LISTED}, the described one always
 * among them.
 */
function listed(described: DescribedLimit, isShown: (take: PlannedTake) => boolean): readonly Listed[] {
  const list: Listed[] = [];
  for (let i = 0; i < described.takes.length; i++) {
    const take = described.takes[i] as PlannedTake;
    const { rule } = take;
    if (!isDecided(take) || !isShown(take)) continue;
    const known = listedOf(list, rule);
    if (known !== undefined) {
      if (isTighter(take, known.take)) known.take = take;
      continue;
    }
    // Of thousands that are not listed, nobody needs the names.
    if (list.length === MAX_LISTED && take !== described.take) continue;
    let names = namesOf(take);
    if (rule !== undefined && list.some((other) => other.names.name === names.name)) {
      names = remembered(pathsOfRules, rule, rule.path);
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
  ofFile: HeaderFamilies | undefined,
  upstream: boolean,
): HeaderFamilies | undefined {
  return (upstream ? rule?.requestHeaders : rule?.responseHeaders) ?? ofFile;
}

/** The values of `ratelimit-policy` and `ratelimit`. */
export interface QuotaFields {
  readonly policies: string;
  readonly quotas: string;
}

/** Whether a limit that applied is listed in the fields of {@link quotaFields}. */
function isListed(take: PlannedTake, ofFile: HeaderFamilies | undefined, upstream: boolean): boolean {
  return take.outcome !== undefined && familiesOf(take, ofFile, upstream)?.rateLimit === true;
}

/** Whether the rule of any limit that applied asks for the fields of {@link quotaFields}. */
export function asksQuotaFields(
  { takes }: DescribedLimit,
  ofFile: HeaderFamilies | undefined,
  upstream: boolean,
): boolean {
  for (let i = 0; i < takes.length; i++) {
    if (isListed(takes[i] as PlannedTake, ofFile, upstream)) return true;
  }
  return false;
}

/** Both fields of draft-ietf-httpapi-ratelimit-headers-11, with an item for every limit whose rule asks for them. */
export function quotaFields(
  described: DescribedLimit,
  ofFile: HeaderFamilies | undefined,
  upstream: boolean,
): QuotaFields {
  const { wallMicros } = described.context;
  let policies = '';
  let quotas = '';
  for (const { names, take } of listed(described, (one) => isListed(one, ofFile, upstream))) {
    const parting = policies === '' ? '' : ', ';
    policies += parting + policyOf(names, take.rate, wallMicros).item;
    const seconds = resetSeconds(take);
    // A full bucket gets no more.
    const until = seconds > 0 ? `;t=${seconds}` : '';
    quotas += `${parting}${names.quoted};r=${take.outcome.remaining}${until}`;
  }
  return { policies, quotas };
}

/**
 * The value of `ratelimit-limit` in draft-03: the limit described, then the policy of every limit whose rule asks for
 * it.
 */
export function draft03Limit(
  described: DescribedLimit,
  ofFile: HeaderFamilies | undefined,
  upstream: boolean,
): string {
  const { wallMicros } = described.context;
  let value = String(described.take.rate.reportedLimit);
  for (const { names, take } of listed(
    described,
    (one) => familiesOf(one, ofFile, upstream)?.rateLimitDraft03 === true,
  )) {
    value += `, ${policyOf(names, take.rate, wallMicros).quota}`;
  }
  return value;
}
