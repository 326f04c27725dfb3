import { readSettings } from '../../server/settings/read-settings.js';
import { redisInstance } from '../../server/settings/redis-address-settings.js';
import type { GivenSettings } from '../../server/settings/settings-check.js';
import {
  hasReferenceDefault,
  INERT_ROWS,
  SETTINGS,
  type Setting,
  type Settings,
  VARIABLES,
} from '../../server/settings/settings-table.js';
import { emptyVariables } from './env-file.js';
import type { Finding, Findings } from './report.js';

type Variables = Readonly<Record<string, string>>;

/** Variables that the container image sets (deploy/Dockerfile); their values are the defaults of the reference. */
export const IMAGE_VARIABLES: Variables = { GRPC_HOST: '0.0.0.0', HOST: '0.0.0.0' };

/** Variables that other settings or the libraries of the reference read. */
const TRACING_VARIABLE = /^OTEL_/;
const MOGRIFIER_VARIABLE = /^DOG_STATSD_MOGRIFIER_/;
const CA_VARIABLE = /^SSL_CERT_(?:FILE|DIR)$/;

export interface VariableFindings extends Findings {
  /** Settings without the invalid and rejected variables. */
  readonly settings: Settings;
  /** Variables to add so that unset variables keep the defaults of the reference. */
  readonly keep: Variables;
}

/**
 * Reports how weir handles the variables of an installation of envoyproxy/ratelimit. `unknown` contains the names of
 * variables whose values are not known.
 */
export function findInVariables(
  variables: Variables,
  unknown: ReadonlySet<string> = new Set(),
): VariableFindings {
  // An unknown address still means that Redis is used, so a placeholder replaces it.
  const unknownUrls = ['REDIS', 'REDIS_PERSECOND'].filter((prefix) => unknown.has(`${prefix}_URL`));
  const placeholders = Object.fromEntries(
    unknownUrls.map((prefix) => [`${prefix}_URL`, addressOfType(variables[`${prefix}_TYPE`])]),
  );
  const { settings, given, refused, leftOut } = readValidSettings({
    ...IMAGE_VARIABLES,
    ...variables,
    ...placeholders,
  });
  const advice: Finding[] = [];
  const unused: Finding[] = [];
  const decide = [...refused];
  const keep: Record<string, string> = {};
  for (const setting of SETTINGS) {
    const { name, reference } = setting;
    if (reference === undefined || unknown.has(name) || leftOut.has(name)) continue;
    if (given.has(name)) {
      if (name === STOP_INCREMENT && settings[setting.key] === true)
        advice.push({ about: name, text: STOP_INCREMENT_TEXT });
    } else if (!hasReferenceDefault(setting) && hasEffect(name, settings, given)) {
      if (PROXY_ADDRESS.test(reference.default)) {
        decide.push({ about: name, text: `${defaultsOf(setting)} ${PROXY_TEXT}` });
        continue;
      }
      keep[name] = reference.default;
      decide.push(defaultFinding(setting));
    }
  }
  for (const { name, reason } of INERT_ROWS) {
    if (unknown.has(name) || leftOut.has(name) || !given.has(name)) continue;
    unused.push({ about: name, text: reason });
  }
  const foreign = Object.keys(variables).filter(
    (name) => !VARIABLES.some((variable) => variable.name === name),
  );
  for (const name of foreign) {
    // Node.js, which runs weir, reads NODE_OPTIONS.
    if (leftOut.has(name) || name === 'NODE_OPTIONS') continue;
    if (CA_VARIABLE.test(name)) decide.push({ about: name, text: CA_TEXT });
    else if (TRACING_VARIABLE.test(name)) {
      if (!settings.tracingEnabled) unused.push({ about: name, text: TRACING_TEXT });
    } else if (!MOGRIFIER_VARIABLE.test(name)) {
      unused.push({ about: name, text: 'weir does not use this variable.' });
    }
  }
  decide.push(...combinations(settings, given));
  return { decide, advice, unused: mergeFindings(unused), settings, keep };
}

/** Returns a placeholder for REDIS_URL in the format that REDIS_TYPE requires. */
function addressOfType(type: string | undefined): string {
  return type?.toLowerCase() === 'sentinel' ? 'mymaster,sentinel:26379' : 'redis:6379';
}

/** Reads the settings without invalid variables, which become findings. */
function readValidSettings(variables: Variables): {
  readonly settings: Settings;
  readonly given: GivenSettings;
  readonly refused: readonly Finding[];
  /** Names of invalid and rejected variables. */
  readonly leftOut: ReadonlySet<string>;
} {
  const left = emptyVariables(variables);
  const refused: Finding[] = [];
  const leftOut = new Set<string>();
  for (;;) {
    const read = readSettings(left);
    if (read.ok) return { settings: read.settings, given: read.given, refused, leftOut };
    const bad = read.errors.flatMap((error) => {
      const [, about = '', text = ''] = /^(\w+(?:, \w+)*): (.*)$/s.exec(error) ?? [];
      refused.push({ about, text: `${text}.` });
      // A mogrifier is enabled by another variable, which is valid but must be removed, too.
      return MOGRIFIER_VARIABLE.test(about) ? [about, 'USE_DOG_STATSD_MOGRIFIERS'] : about.split(', ');
    });
    // Every error must name a variable that is set and not yet removed. Otherwise this loop would never end.
    if (!bad.some((name) => left[name] !== undefined && !leftOut.has(name)))
      throw new Error(`the settings cannot be read: ${read.errors.join('; ')}`);
    for (const name of bad) {
      leftOut.add(name);
      delete left[name];
      // A placeholder replaces an invalid address, so that the other variables of Redis keep their effect.
      const [, url] = /^(REDIS(?:_PERSECOND)?_)(?:URL|TYPE)$/.exec(name) ?? [];
      if (url !== undefined && variables[`${url}URL`] !== undefined) left[`${url}URL`] = 'redis:6379';
    }
  }
}

/** Default of REDIS_TIMEOUT and REDIS_PERSECOND_TIMEOUT in the reference, in microseconds. */
const OLD_REDIS_TIMEOUT = 10_000_000;

/** Returns whether a default that differs from the reference has an effect in this installation. */
function hasEffect(name: string, settings: Settings, given: GivenSettings): boolean {
  const layout =
    settings.configType !== 'FILE' || given.has('CONFIG_PATH') || given.has('RUNTIME_SUBDIRECTORY');
  switch (name) {
    case 'RUNTIME_ROOT':
      return !layout && !given.has('RUNTIME_APPDIRECTORY');
    case 'RUNTIME_APPDIRECTORY': // `config` if another variable of the layout is set
    case 'REDIS_SOCKET_TYPE': // derived from REDIS_URL
    case 'REDIS_PERSECOND_SOCKET_TYPE':
    case 'LOCAL_CACHE_SIZE_IN_BYTES': // only concerns token buckets, which the reference lacks
    case 'REDIS_STARTUP_INITIAL_INTERVAL': // weir only reconnects sooner
    case 'REDIS_STARTUP_MAX_INTERVAL':
    case 'BACKEND_TYPE': // derived from REDIS_URL
      return false;
    case 'REDIS_PERSECOND_TIMEOUT': // REDIS_TIMEOUT if unset
      return settings.perSecond && given.has('REDIS_TIMEOUT') && settings.redisTimeout !== OLD_REDIS_TIMEOUT;
    case 'REDIS_TIMEOUT':
      return settings.redisUrl !== '';
    case 'USE_STATSD': // the reference does not start with two of these
      return !settings.useDogStatsd && !settings.usePrometheus;
    default:
      return true;
  }
}

function defaultsOf({ default: ours, reference }: Setting): string {
  const theirs = reference?.default ?? '';
  return ours === ''
    ? `this variable is not set. Its default in envoyproxy/ratelimit is ${theirs}.`
    : `this variable is not set. Its default is ${theirs} in envoyproxy/ratelimit, and ${ours} in weir.`;
}

function defaultFinding(setting: Setting): Finding {
  const { name, reference } = setting;
  const theirs = reference?.default ?? '';
  const differs = reference?.differs === undefined ? '' : ` ${reference.differs}`;
  const effect = EFFECTS_OF_OLD_DEFAULTS[name];
  const advice =
    effect === undefined
      ? `Set ${name}=${theirs} to keep the current behavior.`
      : `Set ${name}=${theirs} to keep the old default. ${effect}`;
  return { about: name, text: `${defaultsOf(setting)}${differs} ${advice}` };
}

/** Effects of old defaults that differ in weir and envoyproxy/ratelimit, by variable. */
const EFFECTS_OF_OLD_DEFAULTS: Readonly<Record<string, string>> = {
  DEBUG_HOST: 'weir bucket and weir top then fail with status 403 until you set ADMIN_TOKENS_FILE.',
  REDIS_TIMEOUT: 'A request then waits up to 10 seconds for Redis, unless its caller has a shorter deadline.',
  REDIS_PERSECOND_TIMEOUT:
    'A request then waits up to 10 seconds for the Redis at REDIS_PERSECOND_URL, unless its caller has a ' +
    'shorter deadline.',
};

/** Merges findings with the same text into one that names all subjects, in the order of the first ones. */
function mergeFindings(findings: readonly Finding[]): readonly Finding[] {
  const names = new Map<string, string[]>();
  for (const { about, text } of findings) names.set(text, [...(names.get(text) ?? []), about]);
  return [...names].map(([text, list]) => ({ about: list.join(', '), text }));
}

const TRACING_TEXT = 'weir reads OTEL_ variables only if TRACING_ENABLED=true.';

/** Addresses of sharding proxies, such as the default of envoyproxy/ratelimit. */
const PROXY_ADDRESS = /nutcracker|twemproxy/i;
const PROXY_TEXT =
  'This is the socket of twemproxy (nutcracker), which weir does not support. Set this variable to a single Redis ' +
  'server, Sentinel or Redis Cluster. Without it, weir keeps its buckets in memory.';
const CA_TEXT =
  'envoyproxy/ratelimit trusts the CAs that this variable specifies, but weir does not read this ' +
  'variable. Set REDIS_TLS_CACERT for Redis, and CONFIG_GRPC_XDS_SERVER_TLS_CACERT for a management ' +
  'server.';

const STOP_INCREMENT = 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT';
const STOP_INCREMENT_TEXT =
  'weir checks and counts in one step. envoyproxy/ratelimit checks first and counts later, so it may allow ' +
  'two concurrent requests when only one hit remains.';
/** Reports values that are valid, but have another effect in weir, alone or together. */
function combinations(settings: Settings, given: GivenSettings): readonly Finding[] {
  const decide: Finding[] = [];
  const destinations = [
    ['USE_STATSD', settings.useStatsd],
    ['USE_DOG_STATSD', settings.useDogStatsd],
    ['USE_PROMETHEUS', settings.usePrometheus],
  ].flatMap(([name, on]) => (on === true ? [String(name)] : []));
  if (destinations.length > 1) {
    decide.push({
      about: destinations.join(', '),
      text:
        'several metrics targets are enabled. envoyproxy/ratelimit accepts only one target, but weir ' +
        'sends its metrics to all enabled targets. Disable the targets that you do not use.',
    });
  }
  if (given.has('CACHE_KEY_PREFIX')) {
    decide.push({
      about: 'CACHE_KEY_PREFIX',
      text:
        'every Redis key begins with this prefix in weir and in envoyproxy/ratelimit, but the rest of the ' +
        'key differs. If scripts or ACL rules contain whole keys, replace these keys with the keys in ' +
        'docs/operate/redis.md.',
    });
  } else if (/^[^:]+:/.test(settings.redisAuth)) {
    decide.push({
      about: 'REDIS_AUTH',
      text:
        'the value contains a Redis user. weir and envoyproxy/ratelimit use different keys and commands, ' +
        'so grant this user the permissions in docs/operate/redis.md.',
    });
  }
  for (const { prefix, url } of [
    redisInstance(settings, 'REDIS'),
    ...(settings.perSecond ? [redisInstance(settings, 'REDIS_PERSECOND')] : []),
  ]) {
    if (!PROXY_ADDRESS.test(url)) continue;
    decide.push({
      about: `${prefix}_URL`,
      text:
        'the value looks like the address of twemproxy (nutcracker), which distributes keys over several ' +
        'servers. weir does not support such a proxy. Use a single Redis server, Sentinel or Redis Cluster, ' +
        `and set ${prefix}_URL and ${prefix}_TYPE accordingly.`,
    });
  }
  return decide;
}
