import type { StoreFault } from '../../../limiter/failure-policy.js';
import { certificateFault } from '../../../runtime/texts.js';
import { IS_PROXY } from '../connection/redis-error.js';

/**
 * The reaction to a fault:
 * - `reconnect`: closes the connection, looks for the master again, and logs in again. Refused calls are sent again
 * before their deadlines.
 * - `wait`: sends no call until a probe succeeds, because all calls would be refused.
 * - `soon`: like `wait`, but calls wait, because the fault may be over soon.
 * - `count`: consecutive failures open the circuit breaker.
 */
export type FaultReaction = 'reconnect' | 'wait' | 'soon' | 'count';

/** A kind of fault of a Redis or of its connection. */
export interface NodeFault {
  readonly label: StoreFault;
  /** Matches the message of Redis, ioredis or the system. */
  readonly pattern: RegExp;
  readonly reaction: FaultReaction;
  /** What an operator should check, for the log. `prefix` is that of the variables, such as `REDIS`. */
  readonly check: (prefix: string) => string;
}

/** Matches error codes of Redis. Redis 6.2 puts text before the error code of a command in a script. */
const codes = (names: string): RegExp => new RegExp(`(?:^|: -)(?:${names})\\b`);

/** All kinds of faults; the first match applies. */
const NODE_FAULTS: readonly NodeFault[] = [
  {
    label: 'refused',
    pattern: /^All sentinels are unreachable/,
    reaction: 'count',
    check: (prefix) => `no Sentinel announces a master; check ${prefix}_URL and ${prefix}_SENTINEL_AUTH`,
  },
  {
    label: 'not_redis',
    pattern: new RegExp(`^${IS_PROXY}`),
    reaction: 'wait',
    check: (prefix) =>
      'this server distributes keys over several Redis servers, so each of them would allow the whole limit; ' +
      `set ${prefix}_URL to the address of a single Redis server, or use Redis Cluster or Sentinel`,
  },
  {
    label: 'not_redis',
    pattern: /cluster support disabled|unknown command '?`?cluster|belong to different Redis Clusters/i,
    reaction: 'wait',
    check: (prefix) =>
      `${prefix}_URL must list nodes of one Redis Cluster; for a single Redis, set ${prefix}_TYPE=SINGLE`,
  },
  {
    label: 'not_redis',
    // The first alternative is the reply of take.lua. Redis's own message follows, which may match other patterns.
    pattern: /^NOTIME\b|not allowed after non[ -]deterministic/,
    reaction: 'wait',
    check: () => 'it does not allow scripts to read the time (TIME); grant +time to the user',
  },
  {
    label: 'not_redis',
    pattern: /unknown command|DB index|RESP type/,
    reaction: 'wait',
    check: (prefix) => `check whether ${prefix}_URL is the address of a Redis server and its database`,
  },
  {
    label: 'not_redis',
    pattern: /^the script returned a reply in an unknown format|^unexpected reply|more data than requested/,
    // The next reply may belong to another call.
    reaction: 'reconnect',
    check: (prefix) => `check whether ${prefix}_URL is the address of a Redis server`,
  },
  {
    label: 'readonly',
    pattern: codes('READONLY|MASTERDOWN'),
    reaction: 'reconnect',
    check: (prefix) => `it is a replica and does not accept writes; check ${prefix}_URL`,
  },
  {
    label: 'wrongpass',
    pattern: codes('WRONGPASS|NOAUTH'),
    reaction: 'reconnect',
    check: (prefix) =>
      `it refuses the login; check ${prefix}_AUTH, ${prefix}_AUTH_FILE or the login in ${prefix}_URL`,
  },
  {
    label: 'wrongpass',
    pattern: /(?:^|: -)(?:NOPERM|DENIED)\b|The user executing the script can't /,
    reaction: 'wait',
    check: () => 'it refuses a command; check the permissions of the user',
  },
  {
    label: 'loading',
    pattern: codes('LOADING|BUSY|UNKILLABLE|MISCONF|NOREPLICAS'),
    reaction: 'wait',
    check: () => 'it accepts no commands or no writes at the moment; check its log',
  },
  { label: 'oom', pattern: codes('OOM'), reaction: 'count', check: () => 'it has reached its maxmemory' },
  {
    label: 'moved',
    pattern: new RegExp(`${codes('CLUSTERDOWN').source}|^no node of the Redis Cluster (?:has|serves) `),
    reaction: 'soon',
    check: () => 'check the masters and slots of the Redis Cluster',
  },
  {
    label: 'moved',
    pattern: /announced another master/,
    reaction: 'wait',
    check: () => 'a failover has replaced this master, and weir connects to the new master',
  },
  {
    label: 'moved',
    pattern: /^(?:MOVED|ASK|CROSSSLOT|TRYAGAIN)\b/,
    reaction: 'wait',
    check: (prefix) => `if this server is a node of a Redis Cluster, set ${prefix}_TYPE=CLUSTER`,
  },
  {
    label: 'max_clients',
    pattern: /max number of clients/,
    reaction: 'count',
    check: () => 'it has reached its maximum number of connections',
  },
  {
    label: 'refused',
    pattern: /ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN/,
    reaction: 'count',
    check: (prefix) => `no server listens at this address; start Redis, or correct ${prefix}_URL`,
  },
  {
    label: 'tls',
    pattern: /certificate|altnames|disconnected before secure|wrong version|SSL|TLS/i,
    reaction: 'count',
    check: () => 'check REDIS_TLS and the certificates',
  },
  {
    label: 'no_answer',
    pattern: /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|no answer/,
    reaction: 'count',
    check: (prefix) => `it does not answer; check whether Redis hangs, ${prefix}_URL, and REDIS_TLS`,
  },
  {
    label: 'lost',
    pattern: /ECONNRESET|EPIPE|connection (?:is |was )?closed/i,
    reaction: 'count',
    check: () => "check Redis's log and REDIS_TLS",
  },
];

const OTHER: NodeFault = {
  label: 'other',
  pattern: /^/,
  reaction: 'count',
  check: () => "check Redis's log",
};

/** Returns the fault that a message of Redis, ioredis, the system or TLS describes. */
export function nodeFaultOf(message: string): NodeFault {
  return NODE_FAULTS.find(({ pattern }) => pattern.test(message)) ?? OTHER;
}

/** Returns what to check, with the original message in brackets. */
export function nodeFaultText(message: string, prefix: string): string {
  const { check, label } = nodeFaultOf(message);
  return `${check(prefix)} (${label === 'tls' ? certificateFault(message) : withoutSlot(message)})`;
}

/** Removes the slot, which differs in each probe. */
function withoutSlot(message: string): string {
  return message.replace(/^(MOVED|ASK) .*/s, '$1');
}
