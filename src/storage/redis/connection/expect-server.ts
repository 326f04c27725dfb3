import { randomBytes } from 'node:crypto';
import { redisKey } from '../redis-key.js';
import type { SendCommand } from './connection-options.js';
import { IS_PROXY, RedisReplyError } from './redis-error.js';
import { INFO_TEXT, SHORT_TEXT } from './reply-bound.js';
import { infoField } from './server-advice.js';

/**
 * Number of keys that are written separately and then read by one script. If each of two servers has half of all keys,
 * one of them has all 32 of these keys with a probability of 2^-31.
 */
const PROBE_KEYS = 32;
/** Lifetime of probe keys that the script did not remove, in milliseconds. */
export const PROBE_KEY_MS = '5000';
/** A script that removes the probe keys and returns their number. */
const REMOVE_ALL = "return redis.call('DEL',unpack(KEYS))";
/**
 * Errors for commands that a proxy does not forward. Envoy's redis_proxy 1.40 returns one for CLIENT, older proxies for
 * most commands.
 */
const REFUSED = /unknown command|unsupported command|not supported/i;
const PROXY_ERROR = /by the proxy|unsupported command/i;

/**
 * Rejects if the server is a proxy, which its errors for commands without keys reveal. A Redis that lacks or forbids
 * one of these commands is not a proxy.
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
 * Rejects if the keys are on several servers and a script runs on only one of them. The server of a bucket would then
 * depend on the other buckets of the call. Also rejects if Redis refuses the check. `prefix` is the prefix of all keys,
 * see redisKey.
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

/** Returns the keys of `count` unused buckets, each with its own hash tag; see {@link randomText}. */
export function probeKeys(count: number, prefix: string | undefined): string[] {
  const tenant = `probe ${randomText()}`;
  const { length: tagLength } = tenant;
  return Array.from({ length: count }, () => redisKey({ key: tenant + randomText(), tagLength }, prefix));
}

/**
 * Returns sixteen random digits. The hash of twemproxy (32 bits of FNV-1a) hardly depends on the last two characters,
 * so keys that differ only there would stay on one server.
 */
function randomText(): string {
  return randomBytes(8).toString('hex');
}

/**
 * Rejects if a Redis reports that it is not a master. Without permission for the command, the write of the probe
 * detects a replica.
 */
export async function expectMaster(send: SendCommand): Promise<void> {
  const text = await send('info', ['replication'], INFO_TEXT).catch(() => '');
  const role = typeof text === 'string' ? infoField(text, 'role') : undefined;
  if (role !== undefined && role !== 'master') throw new Error(`READONLY this server has the role ${role}`);
}

/** Returns the error of a refused command, or '' if Redis accepted it. */
async function refusal(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return '';
  } catch (error) {
    return error instanceof RedisReplyError ? error.message : '';
  }
}
