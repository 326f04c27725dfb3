import { certificateFault } from '../../../certificate-fault.js';
import type { StoreFault } from '../../../limiter/store-fault.js';
import { IS_PROXY } from './redis-error.js';

/**
 * The reaction to a fault:
 * - `reconnect`: closes the connection, looks for the master again, and logs in again. Refused calls are sent again
 * before their deadlines.
 * - `wait`: sends no call until a probe succeeds, because all calls would be refused.
 * - `soon`: like `wait`, but calls wait, because the fault may be over soon.
 * - `count`: consecutive failures open the circuit breaker.
 */
export type FaultReaction = 'reconnect' | 'wait' | 'soon' | 'count';

/** The setup of a Redis, for messages about it. */
export interface FaultPlace {
  /** Prefix of the variables: `REDIS` for REDIS_URL. */
  readonly prefix: string;
  readonly db: number;
  /** Whether Sentinels announce the address. */
  readonly sentinel: boolean;
  /** Whether it is known to be a node of a Redis Cluster. */
  readonly cluster: boolean;
}

/** A kind of fault of Redis or its connection. */
export interface RedisFault {
  readonly reason: StoreFault;
  /** Matches the message of Redis or the system. */
  readonly pattern: RegExp;
  readonly reaction: FaultReaction;
  /** Returns the problem and what an operator should do, for the log. Absent if the message itself is sufficient. */
  readonly remedy?: (place: FaultPlace) => string;
}

/** Matches an error code of Redis. Redis 6.2 puts text before the error code of a command in a script. */
const code = (name: string): RegExp => new RegExp(`(?:^|: -)${name}\\b`);
/** Redis 6.2 and 7.0 describe a command in a script differently (scripting.c, script.c). */
const NO_PERMISSION = /(?:^|: -)NOPERM\b|The user executing the script can't /;
const url = ({ prefix }: FaultPlace): string => `${prefix}_URL`;

/**
 * All known faults; the first match applies. {@link Outage} adds details about logins. The codes are those of Redis 7
 * and Valkey 9 (server.c, createSharedObjects).
 */
export const REDIS_FAULTS: readonly RedisFault[] = [
  {
    reason: 'proxy',
    pattern: new RegExp(`^${IS_PROXY}`),
    reaction: 'wait',
    remedy: ({ prefix }) =>
      'this server distributes keys over several Redis servers, as twemproxy does, so each of them would ' +
      `allow the whole limit; set ${prefix}_URL to the address of a single Redis server, or use Redis ` +
      'Cluster or Sentinel',
  },
  // Messages about Sentinels contain those of the system, and a remedy.
  { reason: 'no_master', pattern: /^(?:no )?Sentinel /, reaction: 'count' },
  { reason: 'no_cluster', pattern: /Redis Cluster/, reaction: 'count' },
  {
    // The first alternative is the reply of take.lua. Redis's own message follows, which may match any of the patterns
    // below.
    reason: 'no_time',
    pattern: /^NOTIME\b|not allowed after non[ -]deterministic/,
    reaction: 'wait',
    remedy: () =>
      'it does not allow scripts to read the time (TIME), which weir needs; grant +time to the user, or use ' +
      'a Redis that allows TIME in scripts',
  },
  {
    reason: 'readonly',
    pattern: code('READONLY'),
    reaction: 'reconnect',
    remedy: (place) =>
      place.sentinel
        ? 'it is a replica and does not accept writes; weir queries the Sentinels for the master again'
        : `it is a replica and does not accept writes; set ${url(place)} to the address of its master`,
  },
  {
    reason: 'masterdown',
    pattern: code('MASTERDOWN'),
    reaction: 'reconnect',
    remedy: (place) =>
      `it is a replica that has lost its master; restart the master, or set ${url(place)} to the address of the master`,
  },
  {
    reason: 'loading',
    pattern: code('LOADING'),
    reaction: 'wait',
    remedy: () => 'it is loading its data from disk; wait until it has finished',
  },
  {
    reason: 'busy',
    pattern: code('BUSY'),
    reaction: 'wait',
    remedy: () => "another client's script keeps Redis busy; run SCRIPT KILL to end the script",
  },
  {
    reason: 'unkillable',
    pattern: code('UNKILLABLE'),
    reaction: 'wait',
    remedy: () =>
      "another client's script keeps Redis busy and has already written data; wait until the script " +
      'ends, or end Redis with SHUTDOWN NOSAVE',
  },
  {
    reason: 'noreplicas',
    pattern: code('NOREPLICAS'),
    reaction: 'wait',
    remedy: () =>
      'it has too few replicas and therefore does not accept writes; restart the replicas, or lower ' +
      'min-replicas-to-write',
  },
  {
    reason: 'misconf',
    pattern: code('MISCONF'),
    reaction: 'wait',
    remedy: () =>
      'it cannot save to disk and therefore does not accept writes; repair the disk, or set ' +
      'stop-writes-on-bgsave-error to no',
  },
  {
    reason: 'oom',
    pattern: code('OOM'),
    reaction: 'count',
    remedy: () =>
      "it has reached its maxmemory; raise maxmemory, or move other data to another Redis (weir's " +
      'buckets expire by themselves)',
  },
  { reason: 'noauth', pattern: code('NOAUTH'), reaction: 'reconnect' },
  { reason: 'wrongpass', pattern: code('WRONGPASS'), reaction: 'reconnect' },
  { reason: 'noperm', pattern: NO_PERMISSION, reaction: 'wait' },
  { reason: 'noscript', pattern: code('NOSCRIPT'), reaction: 'count' },
  {
    reason: 'cluster_down',
    pattern: code('CLUSTERDOWN'),
    reaction: 'soon',
    remedy: () =>
      'its cluster has lost a master or slots; wait until a replica takes over, restart the master, or ' +
      'set cluster-require-full-coverage to no, so that the other masters serve requests',
  },
  {
    reason: 'cluster',
    pattern: /^(?:MOVED|ASK|CROSSSLOT|TRYAGAIN)\b/,
    reaction: 'wait',
    remedy: (place) =>
      place.cluster
        ? 'it no longer serves its previous slots; weir queries the cluster for its slots again'
        : `it is a node of a Redis Cluster; set ${place.prefix}_TYPE=CLUSTER, or set ${url(place)} to a ` +
          'single Redis server',
  },
  {
    reason: 'protected_mode',
    pattern: code('DENIED'),
    reaction: 'wait',
    remedy: (place) =>
      'it does not accept connections from other machines (protected mode); set a password in Redis and ' +
      `in ${place.prefix}_AUTH`,
  },
  {
    reason: 'max_clients',
    pattern: /max number of clients/,
    reaction: 'count',
    remedy: () => 'it has reached its maximum number of connections; raise maxclients in Redis',
  },
  {
    reason: 'not_redis',
    pattern: /unknown command '?`?(?:set|eval|evalsha|select)\b/i,
    reaction: 'wait',
    remedy: (place) =>
      'this server does not support Redis commands; if it is a Sentinel, set ' +
      `${place.prefix}_TYPE=SENTINEL and ${url(place)}=<name of the master>,<host:port of each Sentinel>`,
  },
  {
    reason: 'not_redis',
    pattern: /unknown command '?`?auth/i,
    reaction: 'wait',
    remedy: (place) => `this server does not support AUTH; remove the login, or correct ${url(place)}`,
  },
  {
    reason: 'no_database',
    pattern: /DB index is out of range/,
    reaction: 'wait',
    remedy: (place) => `it does not have database ${place.db}; choose another database in ${url(place)}`,
  },
  {
    reason: 'refused',
    pattern: /ECONNREFUSED|ENOENT/,
    reaction: 'count',
    remedy: (place) =>
      place.sentinel
        ? 'no server listens at this address; weir keeps querying the Sentinels for another master'
        : place.cluster
          ? 'no server listens at this address; weir keeps querying the other nodes of the cluster for ' +
            'the owner of its slots'
          : `no server listens at this address; start Redis, or correct ${url(place)}`,
  },
  {
    reason: 'unknown_host',
    pattern: /ENOTFOUND|EAI_AGAIN/,
    reaction: 'count',
    remedy: (place) => `the host name is unknown; correct ${url(place)}`,
  },
  {
    reason: 'protocol',
    pattern: /^the script returned a reply in an unknown format/,
    // The next reply may belong to another call.
    reaction: 'reconnect',
    remedy: (place) =>
      `this server mixes up replies, or does not run scripts as Redis does; correct ${url(place)}`,
  },
  {
    reason: 'protocol',
    pattern: /malformed reply/,
    reaction: 'count',
    remedy: (place) => `this server does not speak the Redis protocol; correct ${url(place)}`,
  },
  {
    reason: 'tls',
    pattern: /altnames/,
    reaction: 'count',
    remedy: (place) =>
      `its certificate is for another name; use that name in ${url(place)}, or set ` +
      'REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true',
  },
  {
    reason: 'tls',
    pattern: /self[- ]signed certificate|unable to (?:verify|get)/,
    reaction: 'count',
    remedy: () =>
      "the issuer of its certificate is unknown; set REDIS_TLS_CACERT to the file with the issuer's certificate",
  },
  {
    reason: 'tls',
    pattern: /certificate required/i,
    reaction: 'count',
    remedy: () => 'it requires a client certificate; set REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY',
  },
  {
    reason: 'tls',
    pattern: /certificate|disconnected before secure|wrong version|SSL|TLS/,
    reaction: 'count',
  },
  {
    reason: 'no_answer',
    pattern: /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|no answer/,
    reaction: 'count',
    remedy: (place) =>
      `it does not answer; check whether Redis hangs, and whether weir can connect to the address in ${url(place)}`,
  },
  { reason: 'lost', pattern: /ECONNRESET|EPIPE|connection (?:is |was )?closed/, reaction: 'count' },
  { reason: 'moved', pattern: /announced another master/, reaction: 'reconnect' },
];

const OTHER: RedisFault = { reason: 'other', pattern: /^/, reaction: 'count' };

/** Returns the fault that a message of Redis, the system or TLS describes. */
export function redisFaultOf(text: string): RedisFault {
  return REDIS_FAULTS.find(({ pattern: says }) => says.test(text)) ?? OTHER;
}

/** Removes the slot, which differs in each probe, so that equal sentences are logged once. */
function withoutSlot(text: string): string {
  return text.replace(/^(MOVED|ASK) .*/s, '$1');
}

/** Returns the problem and the remedy, with the original message in brackets. */
export function faultSentence(place: FaultPlace, text: string): string {
  const { remedy, reason } = redisFaultOf(text);
  if (remedy === undefined) return text;
  return `${remedy(place)} (${reason === 'tls' ? certificateFault(text) : withoutSlot(text)})`;
}
