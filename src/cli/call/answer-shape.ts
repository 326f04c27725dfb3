/* What an answer must be made of to be shown: another service may listen where a debug port was expected. */
import type { BucketAnswer } from '../../admin/buckets/messages.js';

/** Whether a value of an answer is what is expected of it. */
export type Check = (value: unknown) => boolean;

export const isText: Check = (value) => typeof value === 'string';
export const isNumber: Check = (value) => typeof value === 'number';
export const isBoolean: Check = (value) => typeof value === 'boolean';

/** Whether it is absent, or what `check` holds of. */
export function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

/** Whether it is null, or what `check` holds of. */
export function nullable(check: Check): Check {
  return (value) => value === null || check(value);
}

/** Whether it is a list of what `check` holds of. */
export function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

/** Whether it is an object with these fields, which are all that a `T` has. */
export function objectOf<T>(
  fields: { readonly [Field in keyof T]-?: Check },
): (value: unknown) => value is T {
  const checks = Object.entries(fields) as [keyof T, Check][];
  return (value): value is T =>
    typeof value === 'object' &&
    value !== null &&
    checks.every(([field, check]) => check((value as T)[field]));
}

/** Whether it is a list of entries. */
export const areEntries = listOf(objectOf<BucketAnswer['entries'][number]>({ key: isText, value: isText }));
