import type { SettingSpec } from './spec.js';

/** Prefix of the variables of one Redis. */
export type RedisPrefix = 'REDIS' | 'REDIS_PERSECOND';

/** Properties of settings that differ between the two Redis. */
interface InstanceDefaults<Timeout> {
  readonly url: Pick<SettingSpec, 'default' | 'help' | 'reference'>;
  readonly authHelp: string;
  readonly authFileHelp: string;
  readonly socketTypeHelp: string;
  readonly timeout: Timeout;
}

/** Settings of one Redis, with its key in front of each name, as in `redisUrl`. */
type WithKey<Key extends string, Specs> = {
  readonly [Name in keyof Specs & string as `${Key}${Capitalize<Name>}`]: Specs[Name];
};

/** Returns the settings that both Redis have. `key` is the prefix of their keys, and `prefix` of their variables. */
export function redisInstanceSettings<Key extends string, const Timeout extends Omit<SettingSpec, 'name'>>(
  key: Key,
  prefix: RedisPrefix,
  particulars: InstanceDefaults<Timeout>,
) {
  // REDIS_URL itself selects Redis as the store.
  const inUse = prefix === 'REDIS' ? (['redis'] as const) : (['redis', 'perSecond'] as const);
  const specs = {
    url: { name: `${prefix}_URL`, effectiveWhen: inUse, type: 'string', secret: true, ...particulars.url },
    auth: {
      name: `${prefix}_AUTH`,
      effectiveWhen: inUse,
      type: 'string',
      default: '',
      help: particulars.authHelp,
      secret: true,
      reference: { default: '' },
    },
    authFile: {
      name: `${prefix}_AUTH_FILE`,
      effectiveWhen: inUse,
      type: 'string',
      default: '',
      help: particulars.authFileHelp,
    },
    sentinelAuth: {
      name: `${prefix}_SENTINEL_AUTH`,
      effectiveWhen: [...inUse, prefix === 'REDIS' ? 'sentinel' : 'perSecondSentinel'],
      type: 'string',
      default: '',
      help: 'Password of the Sentinels, or `user:password`.',
      secret: true,
      reference: { default: '' },
    },
    timeout: { name: `${prefix}_TIMEOUT`, effectiveWhen: inUse, ...particulars.timeout },
    socketType: {
      name: `${prefix}_SOCKET_TYPE`,
      effectiveWhen: inUse,
      type: 'redis_socket_type',
      default: '',
      help: particulars.socketTypeHelp,
      reference: { default: 'unix' },
    },
    type: {
      name: `${prefix}_TYPE`,
      effectiveWhen: inUse,
      type: 'redis_type',
      default: 'SINGLE',
      help:
        '`SINGLE`: one server. `SENTINEL`: the URL lists the name of the master and its Sentinels, such ' +
        'as `mymaster,host1:26379,host2:26379`. `CLUSTER`: the URL lists some nodes, such as ' +
        '`host1:6379,host2:6379`.',
      reference: { default: 'SINGLE' },
    },
    tls: {
      name: `${prefix}_TLS`,
      effectiveWhen: inUse,
      type: 'boolean',
      default: 'false',
      help: 'Connect over TLS, as with a `rediss://` URL.',
      reference: { default: 'false' },
    },
  } as const satisfies Readonly<Record<string, SettingSpec>>;
  return withKey(key, specs);
}

function withKey<Key extends string, Specs extends Readonly<Record<string, SettingSpec>>>(
  key: Key,
  specs: Specs,
): WithKey<Key, Specs> {
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [
      `${key}${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      spec,
    ]),
  ) as WithKey<Key, Specs>;
}
