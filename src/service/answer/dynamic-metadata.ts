import {
  CODE,
  type Descriptor,
  type DescriptorStatus,
  type RateLimitOverride,
  type RateLimitRequest,
} from '../../codec/messages.js';
import { redactEntries } from '../../policy/redact.js';
import type { Decision } from '../plan.js';

type JsonObject = Readonly<Record<string, unknown>>;

/** envoy.type.v3.RateLimitUnit by number. */
const UNIT_NAMES: readonly string[] = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR'];

/**
 * An override as protobuf's text format on one line; fields of value 0 are left out, enum values without a name are
 * numbers.
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

/**
 * What an answer repeats of its request at most, in UTF-16 units; and what an entry, and a descriptor, count beside
 * their texts: encoding takes as long. As much, members counted as entries are, may come from rules.
 */
export const MAX_ECHOED_UNITS = 98_304;
const ENTRY_UNITS = 128;
/** Members of rules' metadata that are looked at for one answer; most rules say what others have said. */
const MAX_MERGED_MEMBERS = 5000;

/** Descriptors as the answer repeats them, up to a size that nobody waits for. */
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

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a member of metadata counts, key apart; above `most` any number above it. */
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

/** What several objects say: of members that two have the first counts, but objects are merged. */
class Merged {
  // Without a prototype, so that a key named `__proto__` is a key.
  readonly members: Record<string, unknown> = Object.create(null);
  /** The objects within it that are no rule's. */
  private readonly ownedObjects = new Set<unknown>([this.members]);
  private unitsLeft = MAX_ECHOED_UNITS;
  private membersLeft = MAX_MERGED_MEMBERS;

  /**
   * Adds what `members` says that was not said before, and never changes it. Returns false where it ended as all became
   * too much.
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

/**
 * The merged `metadata` of the rules that let their descriptors pass, up to a size that nobody waits for; and of how
 * many there was more.
 */
function passedMetadata(
  decisions: readonly Decision[],
  statuses: readonly DescriptorStatus[],
): { readonly metadata: JsonObject | undefined; readonly leftOut: number } {
  let all: Merged | undefined;
  let leftOut = 0;
  // Thousands of descriptors may meet one rule, and the second time it says nothing new.
  const known = new Set<JsonObject>();
  for (let i = 0; i < decisions.length; i++) {
    const { takes } = decisions[i] as Decision;
    if (statuses[i]?.code === CODE.OVER_LIMIT) continue;
    // The limits of a list have the metadata of their node.
    const metadata = takes[0]?.rule?.metadata;
    if (metadata === undefined || known.has(metadata)) continue;
    known.add(metadata);
    all ??= new Merged();
    if (leftOut > 0 || !all.add(metadata)) leftOut++;
  }
  const isEmpty = all === undefined || Object.keys(all.members).length === 0;
  return { metadata: isEmpty ? undefined : all?.members, leftOut };
}

/**
 * The dynamic metadata of RESPONSE_DYNAMIC_METADATA: the request as it came, values of credentials redacted, and the
 * metadata of rules that passed. Members as in envoyproxy/ratelimit (ratelimitToMetadata), which repeats a request
 * whatever its size; `descriptorsLeftOut` says how many are too much here, and `metadataLeftOut` how many rules have
 * metadata that is not, or not all, there. `decisions` is empty where no policy concerns the request.
 */
export function dynamicMetadata(
  request: RateLimitRequest,
  decisions: readonly Decision[],
  statuses: readonly DescriptorStatus[],
  secretKeys: ReadonlySet<string>,
): JsonObject {
  const passed = passedMetadata(decisions, statuses);
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

/** `metadata` itself, with `decision` as its last member where one is told; undefined where there is neither. */
export function withDecision(
  metadata: JsonObject | undefined,
  decision: JsonObject | undefined,
): JsonObject | undefined {
  return decision === undefined ? metadata : Object.assign(metadata ?? {}, { decision });
}
