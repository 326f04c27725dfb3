import type { RedisLog, SendCommand } from './connection-options.js';
import { INFO_TEXT } from './reply-bound.js';

/** Oldest Redis version that take.lua supports: it introduced SET with PXAT. */
const OLDEST = [6, 2] as const;

/** Returns the value of `field` in a reply to INFO. */
export function infoField(info: string, field: string): string | undefined {
  for (const line of info.split(/\r?\n/))
    if (line.startsWith(`${field}:`)) return line.slice(field.length + 1);
  return undefined;
}

/** Warns if Redis may lose buckets. Does nothing if Redis does not permit INFO. Never rejects. */
export async function adviseOn(send: SendCommand, log: RedisLog): Promise<void> {
  try {
    const sections = await Promise.all(
      ['server', 'memory'].map((section) => send('info', [section], INFO_TEXT)),
    );
    for (const advice of serverAdvice(sections.join('\n'))) log('warn', advice);
  } catch {
    // Redis does not permit INFO.
  }
}

/**
 * Returns warnings about this Redis, as sentences. `info` is a reply to INFO; settings that it does not contain cause
 * no warnings.
 */
export function serverAdvice(info: string): string[] {
  const advice: string[] = [];
  const version = infoField(info, 'redis_version');
  const [major, minor] = (version ?? '').split('.').map(Number);
  if (major !== undefined && minor !== undefined && isOlder(major, minor)) {
    advice.push(`Redis ${version} is too old for weir; upgrade to Redis ${OLDEST.join('.')} or later`);
  }
  const policy = infoField(info, 'maxmemory_policy');
  const maxmemory = Number(infoField(info, 'maxmemory') ?? '0');
  if (policy !== undefined && policy !== 'noeviction' && maxmemory > 0) {
    advice.push(
      `Redis may evict buckets before they are full (maxmemory-policy ${policy}), which gives callers ` +
        'full buckets too early; set maxmemory-policy to noeviction',
    );
  }
  return advice;
}

function isOlder(major: number, minor: number): boolean {
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
}
