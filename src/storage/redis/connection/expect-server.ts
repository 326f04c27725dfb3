import { randomBytes } from 'node:crypto';
import { redisKey } from '../redis-key.js';
import type { SendCommand } from './connection-options.js';
import { IS_PROXY, RedisReplyError } from './redis-error.js';
import { INFO_TEXT, SHORT_TEXT } from './reply-bound.js';
import { infoField } from './server-advice.js';

/**
 * Number of keys that are written separately and then read by one script. If two servers have half of the keys each,
 * the probability that one has all of these is 2^-31.
 */
const PROBE_KEYS = 32;
/** How long keys that the script did not find remain, in milliseconds. */
export const PROBE_KEY_MS = '5000';
/** Returns the number of keys that it found and removed. */
const REMOVE_ALL = "return redis.call('DEL',unpack(KEYS))";
/**
 * Errors for commands that a proxy does not forward: of Envoy's redis_proxy 1.40 for CLIENT, of older ones for most
 * commands.
 */
const REFUSED = /unknown command|unsupported command|not supported/i;
const PROXY_ERROR = /by the proxy|unsupported command/i;

/**
 * Rejects if a proxy replies, which its errors for commands without keys reveal. A Redis that lacks one of these
 * commands, or forbids it, is not a proxy.
 */
export async function expectServer(send: SendCommand): Promise<void> {
  const client = await refusal(send('client', ['ID'], { integers: 0, textBytes: 0 }));
  if (PROXY_ERROR.test(client)) throw new Error(`${IS_PROXY} ${client}`);
  if (!REFUSED.test(client)) return;
  const script = await refusal(send('script', ['LOAD', 'return 1'], SHORT_TEXT));
  if (!REFUSED.test(script)) return;
  const info = await refusal(send('info', ['server'], INFO_TEXT));
  if (REFUSED.test(info)) throw new Error(`${IS_PROXY} it does not forward CLIENT, SCRIPT or INFO (${info})`);
}

/**
 * Rejects if the keys are on several servers and a script goes to only one of them: the place of a bucket would depend
 * on the rest of its call. Also rejects if Redis refuses the check. `prefix` is the one of keys, see redisKey.
 */
export async function expectSingleServer(send: SendCommand, prefix: string | undefined): Promise<void> {
  const keys = Array.from({ length: PROBE_KEYS }, () => probeKeys(1, prefix)).flat();
  const written = keys.map((key) => send('set', [key, '1', 'PX', PROBE_KEY_MS], SHORT_TEXT));
  const found = send('eval', [REMOVE_ALL, String(PROBE_KEYS), ...keys], SHORT_TEXT);
  try {
    await Promise.all([...written, found]);
  } catch (error) {
    // Only Redis itself has users.
    if (error instanceof RedisReplyError && error.code === 'NOPERM') return;
    throw error;
  }
  if ((await found) !== PROBE_KEYS)
    throw new Error(`${IS_PROXY} a script finds only ${await found} of ${PROBE_KEYS} keys`);
}

/** Returns keys of `count` unused buckets, each with a hash tag of its own; see {@link randomText}. */
export function probeKeys(count: number, prefix: string | undefined): string[] {
  const tenant = `probe ${randomText()}`;
  const { length: tagLength } = tenant;
  return Array.from({ length: count }, () => redisKey({ key: tenant + randomText(), tagLength }, prefix));
}

/**
 * Returns sixteen random digits. The hash of twemproxy (FNV-1a, of which it keeps 32 bits) depends so little on the
 * last two characters that keys which differ only there stay on one server.
 */
function randomText(): string {
  return randomBytes(8).toString('hex');
}

/** Rejects if a Redis says that it is not a master. Without permission for the command, a write finds out. */
export async function expectMaster(send: SendCommand): Promise<void> {
  const text = await send('info', ['replication'], INFO_TEXT).catch(() => '');
  const role = typeof text === 'string' ? infoField(text, 'role') : undefined;
  if (role !== undefined && role !== 'master') throw new Error(`READONLY its role is ${role}`);
}

/** Returns the error of a refused command; empty if it was not refused. */
async function refusal(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return '';
  } catch (error) {
    return error instanceof RedisReplyError ? error.message : '';
  }
}
