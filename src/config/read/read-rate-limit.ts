import type { StoreFailurePolicy } from '../../limiter/failure-policy.js';
import { MAX_UINT32 } from '../../limiter/rate.js';
import type { PlannedRate } from '../../policy/plans/plan-rate.js';
import type { RateSpec } from '../../policy/rate-spec.js';
import type { DeniedResponse, HeaderFamilies, HoldSpec, OnOver } from '../../policy/rule.js';
import { shownStart } from '../../runtime/shown-address.js';
import type { FieldReader, Located } from '../yaml/field-reader.js';
import { keysOf } from './policy-fields.js';
import { LIMIT_KEYS, MISPLACED_KEYS, NOT_IN_LIMITS, RATE_KEYS, RATE_LIMIT_KEYS } from './policy-keys.js';
import type { RateDefaults, RateFields } from './rates/rate-fields.js';
import { readRate } from './rates/read-rate.js';
import { unitOf } from './rates/unit-of.js';
import { readOnOver, warnOfUnusedResponse } from './read-on-over.js';
import {
  readDeniedResponse,
  readRequestHeaders,
  readResponseHeaders,
  readStoreFailure,
} from './read-response.js';

/** A `rate_limit` as written in the file. */
export interface RateLimitFields {
  readonly name: string;
  /** Absent if `unlimited: true`. */
  readonly rate: RateSpec | undefined;
  /** Absent for a limit without holds. */
  readonly hold: HoldSpec | undefined;
  /** Absent if no number comes from a plan. */
  readonly plan: PlannedRate | undefined;
  readonly replaces: readonly Located<string>[];
  /** Absent if the setting of the file applies. */
  readonly onStoreFailure: StoreFailurePolicy | undefined;
  readonly responseHeaders: HeaderFamilies | undefined;
  readonly requestHeaders: HeaderFamilies | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
  readonly onOver: OnOver | undefined;
}

/** Keys that envoyproxy/ratelimit ignores on an unlimited rule. It rejects the other keys. */
const REFERENCE_KEYS: readonly string[] = ['unit', 'requests_per_unit'];

/** Reads a `rate_limit`. Returns undefined if it has errors, all of which are reported. */
export function readRateLimit(reader: FieldReader, defaults: RateDefaults): RateLimitFields | undefined {
  const errorsBefore = reader.problems.errorCount;
  reader.expectKeys(RATE_LIMIT_KEYS, MISPLACED_KEYS);
  const fields = readSharedFields(reader);
  const unlimited = reader.boolean('unlimited');
  const badUnlimited = unlimited === undefined && reader.field('unlimited') !== undefined;
  const limit =
    unlimited === true ? readUnlimited(reader) : badUnlimited ? undefined : readRate(reader, defaults);
  if (reader.problems.errorCount > errorsBefore) return undefined;
  if (fields.onOver !== undefined) warnOfUnusedResponse(reader, defaults);
  return { ...fields, rate: limit?.rate, hold: limit?.hold, plan: limit?.plan };
}

/** Reads the fields that an item of `rate_limits` shares with a `rate_limit`. Its rate is never absent. */
export function readLimit(reader: FieldReader, defaults: RateDefaults): RateLimitFields | undefined {
  const errorsBefore = reader.problems.errorCount;
  reader.expectKeys(LIMIT_KEYS, undefined, NOT_IN_LIMITS);
  const fields = readSharedFields(reader);
  const limit = readRate(reader, defaults);
  if (reader.problems.errorCount > errorsBefore || limit === undefined) return undefined;
  if (fields.onOver !== undefined) warnOfUnusedResponse(reader, defaults);
  return { ...fields, plan: undefined, ...limit };
}

/** Reads the fields of a `rate_limit` or an item of `rate_limits` other than its rate. */
function readSharedFields(reader: FieldReader): Omit<RateLimitFields, keyof RateFields> {
  const name = reader.name('name') ?? '';
  return {
    name,
    replaces: readReplaces(reader, name),
    onStoreFailure: readStoreFailure(reader),
    responseHeaders: readResponseHeaders(reader),
    requestHeaders: readRequestHeaders(reader),
    deniedResponse: readDeniedResponse(reader),
    onOver: readOnOver(reader),
  };
}

function readReplaces(reader: FieldReader, name: string): readonly Located<string>[] {
  const replaces: Located<string>[] = [];
  for (const item of reader.mappings('replaces', 'mappings with a name', 'name')) {
    item.expectKeys(keysOf('replaced_rule'), MISPLACED_KEYS);
    const replaced = item.name('name') ?? '';
    if (replaced === '') {
      item.error(
        'name',
        'an item of "replaces" has no "name"; write the name of the rule to replace, or remove the item',
      );
    } else if (replaced === name) {
      item.error('name', `"replaces" contains the rule's own name "${name}"; remove it`);
    } else {
      replaces.push({ value: replaced, at: item.at('name'), path: item.pathOf('name') });
    }
  }
  return replaces;
}

function readUnlimited(reader: FieldReader): undefined {
  const unit = reader.name('unit');
  if (unit !== undefined && unitOf(unit) !== undefined) {
    reader.error('unit', 'an unlimited rule cannot have a unit; remove "unit" or "unlimited"');
  } else if (unit !== undefined) {
    // envoyproxy/ratelimit does not know this unit either, but ignores it here.
    reader.warn('unit', `"${shownStart(unit)}" is ignored, because the rule is unlimited; remove it`);
  }
  for (const key of RATE_KEYS) {
    if (REFERENCE_KEYS.includes(key) || reader.field(key) === undefined) continue;
    const what = key === 'token_bucket' ? 'a bucket' : `"${key}"`;
    reader.error(key, `an unlimited rule cannot have ${what}; remove "${key}" or "unlimited"`);
  }
  if (reader.field('requests_per_unit') !== undefined) {
    const number = reader.integer('requests_per_unit', 0, MAX_UINT32);
    if (number !== undefined) {
      reader.warn(
        'requests_per_unit',
        '"requests_per_unit" is ignored, because the rule is unlimited; remove it',
      );
    }
  }
  for (const key of ['response_headers', 'request_headers', 'denied_response', 'on_over']) {
    if (reader.field(key) !== undefined)
      reader.warn(key, `"${key}" is ignored, because the rule is unlimited; remove it`);
  }
  return undefined;
}
