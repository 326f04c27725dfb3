import {
  CODE,
  type Descriptor,
  type DescriptorStatus,
  type RateLimitOverride,
  type RateLimitRequest,
} from '../../codec/messages.js';
import { exactTimeText } from '../../limiter/clock.js';
import { redactEntries } from '../../policy/redact.js';
import type { DescriptorState, RequestContext } from '../request-context.js';

/**
 * Maximum size of the request's echo in an answer, in UTF-16 units. Each entry and each descriptor adds
 * {@link ENTRY_UNITS}, because encoding takes as long. The bound keeps an answer to 1,000 entries below 2 ms.
 */
export const MAX_ECHOED_UNITS = 24_576;

/** Names of envoy.type.v3.RateLimitUnit by number. */
const UNIT_NAMES: readonly string[] = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR'];

/**
 * Formats an override in protobuf's text format, on one line. Fields of value 0 are omitted, and enum values without a
 * name are numbers.
 */
function overrideText({ requestsPerUnit, unit }: RateLimitOverride): string {
  const fields: string[] = [];
  if (requestsPerUnit !== 0) fields.push(`requests_per_unit:${requestsPerUnit}`);
  if (unit !== 0) fields.push(`unit:${UNIT_NAMES[unit] ?? unit | 0}`);
  return fields.join(' ');
}

function descriptorObject(descriptor: Descriptor, secretKeys: ReadonlySet<string>): JsonObject {
  const entries = redactEntries(descriptor.entries, secretKeys);
  return {
    entries: entries.map(({ key, value }) => `${key}=${value}`),
    ...(descriptor.limit !== undefined && { limit: overrideText(descriptor.limit) }),
    ...(descriptor.hitsAddend !== undefined && { hitsAddend: descriptor.hitsAddend }),
  };
}

/** Returns the descriptors that the answer echoes, up to {@link MAX_ECHOED_UNITS}. */
function echoedDescriptors(
  descriptors: readonly Descriptor[],
  secretKeys: ReadonlySet<string>,
): JsonObject[] {
  const objects: JsonObject[] = [];
  let units = 0;
  for (let i = 0; i < descriptors.length; i++) {
    const descriptor = descriptors[i] as Descriptor;
    units += ENTRY_UNITS;
    for (let at = 0; at < descriptor.entries.length && units <= MAX_ECHOED_UNITS; at++) {
      const { key, value } = descriptor.entries[at] as Descriptor['entries'][number];
      units += ENTRY_UNITS + key.length + value.length;
    }
    if (units > MAX_ECHOED_UNITS) return objects;
    objects.push(descriptorObject(descriptor, secretKeys));
  }
  return objects;
}

/**
 * Returns the merged `metadata` of the rules that allowed their descriptors, up to a bound, and the number of rules
 * that were left out.
 */
function passedMetadata(
  states: readonly DescriptorState[],
  statuses: readonly DescriptorStatus[],
): { readonly metadata: JsonObject | undefined; readonly leftOut: number } {
  let all: Merged | undefined;
  let leftOut = 0;
  // Thousands of descriptors may match one rule, whose metadata needs to be merged only once.
  const known = new Set<JsonObject>();
  for (let i = 0; i < states.length; i++) {
    const { takes } = states[i] as DescriptorState;
    if (statuses[i]?.code === CODE.OVER_LIMIT) continue;
    // All limits of a node share its metadata.
    const metadata = takes[0]?.rule?.metadata;
    if (metadata === undefined || known.has(metadata)) continue;
    known.add(metadata);
    all ??= new Merged();
    if (leftOut > 0 || !all.add(metadata)) leftOut++;
  }
  return { metadata: all === undefined || all.isEmpty ? undefined : all.members, leftOut };
}

/**
 * Returns the dynamic metadata of RESPONSE_DYNAMIC_METADATA: the request as received, with secret values redacted, and
 * the metadata of rules that allowed it. The members are those of envoyproxy/ratelimit (ratelimitToMetadata), which
 * echoes requests of any size. Here, `descriptorsLeftOut` is the number of descriptors over the bound, and
 * `metadataLeftOut` the number of rules whose metadata is incomplete or missing. `decisions` is empty if no policy
 * applies to the request.
 */
export function dynamicMetadata(
  request: RateLimitRequest,
  states: readonly DescriptorState[],
  statuses: readonly DescriptorStatus[],
  secretKeys: ReadonlySet<string>,
): JsonObject {
  const passed = passedMetadata(states, statuses);
  const descriptors = echoedDescriptors(request.descriptors, secretKeys);
  const leftOut = request.descriptors.length - descriptors.length;
  return {
    domain: request.domain.slice(0, MAX_ECHOED_UNITS),
    descriptors,
    ...(leftOut > 0 && { descriptorsLeftOut: leftOut }),
    ...(request.hitsAddend !== 0 && { hitsAddend: request.hitsAddend }),
    ...(passed.metadata !== undefined && { metadata: passed.metadata }),
    ...(passed.leftOut > 0 && { metadataLeftOut: passed.leftOut }),
  };
}

/**
 * Returns the entry keys whose values the echo redacts: the secret keys of the policy, and the key of hold tokens. A
 * token can end the holds of a request.
 */
export function redactedKeys({ policy, options }: RequestContext): ReadonlySet<string> {
  return policy.hasHolds
    ? new Set([...policy.secretKeys, options.answers.holdNames.entry])
    : policy.secretKeys;
}

/** Adds the token of a request's holds, if there is one, to `metadata`. */
export function withToken(
  metadata: JsonObject | undefined,
  token: string | undefined,
  key: string,
): JsonObject | undefined {
  if (token === undefined) return metadata;
  return metadata === undefined ? { [key]: token } : { ...metadata, [key]: token };
}

/**
 * Adds `decision`, if there is one, to `metadata` as its last member, with the time of the decision; undefined if both
 * are undefined.
 */
export function withDecision(
  metadata: JsonObject | undefined,
  decision: JsonObject | undefined,
  { wallMicros, options: { clock } }: Pick<RequestContext, 'wallMicros' | 'options'>,
): JsonObject | undefined {
  if (decision === undefined) return metadata;
  const decidedAt = exactTimeText(clock.exactWallMicros?.() ?? wallMicros);
  return Object.assign(metadata ?? {}, { decision: { ...decision, decided_at: decidedAt } });
}

/** Adds the metadata of soft limits that the request is over, if there is any, as the member `over`. */
export function withOver(
  metadata: JsonObject | undefined,
  over: JsonObject | undefined,
): JsonObject | undefined {
  return over === undefined ? metadata : { ...metadata, over };
}

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Maximum size of the metadata of rules in an answer, in UTF-16 units. Each member adds {@link ENTRY_UNITS} to its
 * strings, because encoding takes as long.
 */
export const MAX_METADATA_UNITS = 98_304;
const ENTRY_UNITS = 128;
/**
 * Maximum number of metadata members that are read for one answer; the rules of a request mostly have the same members.
 */
const MAX_MERGED_MEMBERS = 5000;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the size of a metadata member without its key, in UTF-16 units; any number above `max` if it is larger. */
function unitsOf(member: unknown, max: number): number {
  if (typeof member === 'string') return ENTRY_UNITS + member.length;
  let units = ENTRY_UNITS;
  if (typeof member !== 'object' || member === null) return units;
  const isList = Array.isArray(member);
  for (const [key, value] of Object.entries(member)) {
    units += (isList ? 0 : key.length) + unitsOf(value, max - units);
    if (units > max) break;
  }
  return units;
}

/** Merges objects: of equal members the first one wins, but objects are merged recursively. */
export class Merged {
  // Has no prototype, so that a key named `__proto__` is an ordinary key.
  readonly members: Record<string, unknown> = Object.create(null);
  /** Objects of the result that this class created, which therefore belong to no rule. */
  private readonly ownedObjects = new Set<unknown>([this.members]);
  private unitsLeft = MAX_METADATA_UNITS;
  private membersLeft = MAX_MERGED_MEMBERS;

  get isEmpty(): boolean {
    return Object.keys(this.members).length === 0;
  }

  /**
   * Adds the members of `members` that are missing, without changing `members`. Returns false if a bound stopped it.
   */
  add(members: JsonObject, to: Record<string, unknown> = this.members): boolean {
    for (const key of Object.keys(members)) {
      if (--this.membersLeft < 0) return false;
      const value = members[key];
      const known = to[key];
      if (known === undefined) {
        const units = key.length + unitsOf(value, this.unitsLeft);
        if (units > this.unitsLeft) return false;
        this.unitsLeft -= units;
        to[key] = value;
      } else if (isObject(known) && isObject(value) && !this.add(value, this.owned(known, key, to))) {
        return false;
      }
    }
    return true;
  }

  private owned(known: JsonObject, key: string, to: Record<string, unknown>): Record<string, unknown> {
    if (this.ownedObjects.has(known)) return known;
    const copy: Record<string, unknown> = Object.assign(Object.create(null), known);
    this.ownedObjects.add(copy);
    to[key] = copy;
    return copy;
  }
}
