/* Checks of the shape of an answer, because another service may listen on the port instead of a debug port. */
import type { BucketAnswer } from '../../admin/buckets/messages.js';

/** Returns whether a value has the expected type. */
export type Check = (value: unknown) => boolean;

export const isText: Check = (value) => typeof value === 'string';
export const isNumber: Check = (value) => typeof value === 'number';
export const isBoolean: Check = (value) => typeof value === 'boolean';

/** Returns a check that accepts undefined, and values that `check` accepts. */
export function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

/** Returns a check that accepts null, and values that `check` accepts. */
export function nullable(check: Check): Check {
  return (value) => value === null || check(value);
}

/** Returns a check that accepts arrays whose elements `check` accepts. */
export function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

/** Returns a check that accepts objects with these fields. The type requires a check for each field of `T`. */
export function objectOf<T>(
  fields: { readonly [Field in keyof T]-?: Check },
): (value: unknown) => value is T {
  const checks = Object.entries(fields) as [keyof T, Check][];
  return (value): value is T =>
    typeof value === 'object' &&
    value !== null &&
    checks.every(([field, check]) => check((value as T)[field]));
}

/** Accepts a list of descriptor entries. */
export const areEntries = listOf(objectOf<BucketAnswer['entries'][number]>({ key: isText, value: isText }));
