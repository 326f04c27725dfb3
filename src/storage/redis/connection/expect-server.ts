import { randomBytes } from 'node:crypto';
import { redisKey } from '../redis-key.js';
import type { SendCommand } from './connection-options.js';
import { IS_PROXY, RedisReplyError } from './redis-error.js';
import { INFO_TEXT, SHORT_TEXT } from './reply-bound.js';
import { infoField } from './server-advice.js';

/**
 * Keys that are written one by one and then looked for by one script. On two servers, each of which has half of the
 * keys, all of them lie on one by chance once in 2 to the power of 31.
 */
const PROBE_KEYS = 32;
/** How long a key stays that the script did not find. Milliseconds. */
export const PROBE_KEY_MS = '5000';
/** Answers how many of its keys it found, and removes them. */
const REMOVE_ALL = "return redis.call('DEL',unpack(KEYS))";
/** What is said of a command that is not passed on; by Envoy's redis_proxy 1.40 of CLIENT, by older ones of most. */
const REFUSED = /unknown command|unsupported command|not supported/i;
const PROXY_SAYS = /by the proxy|unsupported command/i;

/**
 * Rejects where what answers is a proxy by what it says of commands that name no key. A Redis that lacks one of
 * them, or has it not for this user, is no proxy for that.
 */
export async function expectServer(send: SendCommand): Promise<void> {
  const client = await refusal(send('client', ['ID'], { integers: 0, textBytes: 0 }));
  if (PROXY_SAYS.test(client)) throw new Error(`${IS_PROXY} ${client}`);
  if (!REFUSED.test(client)) return;
  const script = await refusal(send('script', ['LOAD', 'return 1'], SHORT_TEXT));
  if (!REFUSED.test(script)) return;
  const info = await refusal(send('info', ['server'], INFO_TEXT));
  if (REFUSED.test(info))
    throw new Error(`${IS_PROXY} it passes on neither CLIENT nor SCRIPT nor INFO (${info})`);
}

/**
 * Rejects where keys lie on several servers, and a script over them goes to one: a bucket's place would depend on what
 * else is in its call. Also rejects where Redis refuses what is needed to find out. `prefix` is that of keys, see
 * redisKey.
 */
export async function expectSingleServer(send: SendCommand, prefix: string | undefined): Promise<void> {
  const keys = Array.from({ length: PROBE_KEYS }, () => probeKeys(1, prefix)).flat();
  const written = keys.map((key) => send('set', [key, '1', 'PX', PROBE_KEY_MS], SHORT_TEXT));
  const found = send('eval', [REMOVE_ALL, String(PROBE_KEYS), ...keys], SHORT_TEXT);
  try {
    await Promise.all([...written, found]);
  } catch (error) {
    // Only Redis itself knows users.
    if (error instanceof RedisReplyError && error.code === 'NOPERM') return;
    throw error;
  }
  if ((await found) !== PROBE_KEYS)
    throw new Error(`${IS_PROXY} of ${PROBE_KEYS} keys a script finds but ${await found}`);
}

/** Keys of so many buckets that nobody has, of a tenant of their own; see {@link randomText}. */
export function probeKeys(count: number, prefix: string | undefined): string[] {
  const tenant = `probe ${randomText()}`;
  const { length: tagLength } = tenant;
  return Array.from({ length: count }, () => redisKey({ key: tenant + randomText(), tagLength }, prefix));
}

/**
 * Sixteen digits that are others each time: by the last two characters alone the hash of twemproxy (FNV-1a, of which it
 * keeps 32 bits) moves a key so little that it stays on its server.
 */
function randomText(): string {
  return randomBytes(8).toString('hex');
}

/** Rejects where a Redis says that it is no master. Who may not ask finds out by a write. */
export async function expectMaster(send: SendCommand): Promise<void> {
  const text = await send('info', ['replication'], INFO_TEXT).catch(() => '');
  const role = typeof text === 'string' ? infoField(text, 'role') : undefined;
  if (role !== undefined && role !== 'master') throw new Error(`READONLY its role is ${role}`);
}

/** What was said of a command that was refused; empty where it was not. */
async function refusal(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return '';
  } catch (error) {
    return error instanceof RedisReplyError ? error.message : '';
  }
}
