/** Returns whether `plans.from` is an address instead of a file. */
export function isPlanAddress(from: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(from);
}

/** Returns whether an address is a hash in Redis. Others are errors. */
export function isRedisAddress(address: string): boolean {
  return /^rediss?:/i.test(address);
}
