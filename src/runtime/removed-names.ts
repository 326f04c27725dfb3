/**
 * The only list of names of the first edition (commit 0c7654cc, docs/versions.md) that weir no longer has: commands,
 * options, environment variables and policy keys. A removed name is never silently ignored, and never turns a limit
 * off. Each entry has a sentence that says what to use instead. The list may be deleted in December 2027.
 */

/** Commands, and actions such as `bucket block`, with the sentence that is printed before weir exits with code 2. */
export const REMOVED_COMMANDS: ReadonlyMap<string, string> = new Map([
  [
    'suggest',
    'weir suggest was removed; write a limit in "phase: monitoring", which denies nothing, and read from its metrics ' +
      'how many requests it would deny',
  ],
  [
    'bucket block',
    'weir bucket block was removed; set "blocked: true" for the customer in the table of plans, see ' +
      'docs/policy/plans.md',
  ],
  [
    'bucket unblock',
    'weir bucket unblock was removed; a block is "blocked: true" in the table of plans, see docs/policy/plans.md',
  ],
  [
    'bucket allow',
    'weir bucket allow was removed; set "unlimited: true" for the customer in the table of plans, see ' +
      'docs/policy/plans.md',
  ],
  [
    'bucket disallow',
    'weir bucket disallow was removed; an exemption is "unlimited: true" in the table of plans, see ' +
      'docs/policy/plans.md',
  ],
  [
    'bucket blocks',
    'weir bucket blocks was removed; the table of plans names the blocked customers, see docs/policy/plans.md',
  ],
]);

const MIGRATE_WRITES_NOTHING =
  'weir migrate only reports, and writes no files; change the image and the variables by hand, as ' +
  'docs/migrate.md describes';

/** Options by command and option, such as `diff --log`, with the sentence that replaces "unknown option". */
const REMOVED_OPTIONS: ReadonlyMap<string, string> = new Map([
  ...[
    ...['anonymise', 'as-active', 'by', 'envoy', 'html', 'log-format', 'max-newly-denied', 'max-unreadable'],
    ...['replay', 'sampled', 'slack', 'top', 'warm', 'window'],
  ].map(
    (option) =>
      [
        `diff --${option}`,
        'weir diff no longer reads access logs; leave the option out, and the exit code says whether a request may ' +
          'be denied that the old policy allows',
      ] as const,
  ),
  [
    'bucket --over',
    'weir bucket grant fills up to the limit; to allow more, raise the limit of the caller, for example in its row ' +
      'of plans',
  ],
  ['top --once', 'weir top prints the table once unless --watch is set; leave the option out'],
  ['top --every', 'use --watch, which prints the table every two seconds'],
  ['migrate --write', MIGRATE_WRITES_NOTHING],
  ['migrate --force', MIGRATE_WRITES_NOTHING],
  ['migrate --image', MIGRATE_WRITES_NOTHING],
]);

/** What a removed name causes: `refused` ends the start, `ignored` causes a warning. */
export type RemovedEffect = 'refused' | 'ignored';

export interface RemovedVariable {
  /** Name of the environment variable. Its flag of `weir serve`, such as `--redis-clock`, is always refused. */
  readonly name: string;
  /** The values that the entry concerns; undefined for every value. */
  readonly values?: RegExp;
  readonly effect: RemovedEffect;
  /** A clause without a full stop, which follows the name and a colon. */
  readonly sentence: string;
}

/** The first entry for a name and a value applies. An entry with `values` may belong to a variable that stays. */
const REMOVED_VARIABLES: readonly RemovedVariable[] = [
  ...['REDIS_TYPE', 'REDIS_PERSECOND_TYPE'].map(
    (name): RemovedVariable => ({
      name,
      values: /^proxy$/i,
      effect: 'refused',
      sentence:
        'weir no longer supports sharding proxies (PROXY); use Redis Cluster (CLUSTER), Sentinel ' +
        '(SENTINEL), or a single Redis server (SINGLE)',
    }),
  ),
  {
    name: 'PLANS_CACHE_PATH',
    effect: 'ignored',
    sentence:
      'weir keeps no copies of tables of plans on disk any more. Until the table can be read after a restart, all ' +
      'customers have the limits of customers without a row; remove this setting',
  },
  ...['REDIS_AUTH_COMMAND', 'REDIS_PERSECOND_AUTH_COMMAND'].map(
    (name): RemovedVariable => ({
      name,
      effect: 'refused',
      sentence:
        `weir no longer runs a command to get the login; let a job or a sidecar write the login to a file, and set ` +
        `${name.replace('COMMAND', 'FILE')} to this file, which weir reads again whenever it changes`,
    }),
  ),
  {
    name: 'REDIS_AUTH_REFRESH',
    effect: 'ignored',
    sentence: 'weir reads REDIS_AUTH_FILE again whenever it changes; unset this variable',
  },
  {
    name: 'GRPC_MAX_INFLATED_BYTES',
    effect: 'ignored',
    sentence:
      'MAX_REQUEST_BYTES now bounds the size of a request after decompression as well; unset this variable',
  },
  {
    name: 'REDIS_CLOCK',
    values: /^(?!(?:auto|server)$)/i,
    effect: 'refused',
    sentence:
      "weir always uses Redis's clock and no longer passes the time to scripts; unset this variable, and use a " +
      'Redis that allows TIME in scripts',
  },
  { name: 'RLS_CODEC', effect: 'ignored', sentence: 'weir always uses its own codec; unset this variable' },
  { name: 'REDIS_CLOCK', effect: 'ignored', sentence: "weir always uses Redis's clock; unset this variable" },
];

/** Names of the removed variables, without those of which only some values were removed. */
export const REMOVED_VARIABLE_NAMES: ReadonlySet<string> = new Set(
  REMOVED_VARIABLES.filter(({ values }) => values === undefined).map(({ name }) => name),
);

/** Undefined if the variable was not removed, or if its entry does not concern this value. */
export function removedVariable(name: string, value: string): RemovedVariable | undefined {
  return REMOVED_VARIABLES.find((one) => one.name === name && one.values?.test(value) !== false);
}

/** The sentence about a removed option, which is given without `--`. */
export function removedOption(command: string, option: string): string | undefined {
  const isFlag = ({ name }: RemovedVariable): boolean =>
    command === 'serve' && name.toLowerCase().replaceAll('_', '-') === option;
  return REMOVED_OPTIONS.get(`${command} --${option}`) ?? REMOVED_VARIABLES.findLast(isFlag)?.sentence;
}

export interface RemovedKey {
  /** `refused`: a load error, which also refuses a start with other valid files. `ignored`: a warning. */
  readonly effect: RemovedEffect;
  readonly sentence: string;
}

/** Values of `plans.from` that are refused like a removed key. */
export const REMOVED_PLAN_ADDRESS = {
  pattern: /^https?:/i,
  sentence:
    'weir does not read tables over HTTP any more; let a job write the table to a file, and name this file, or write ' +
    'the rows into a hash in Redis, and name redis://<host>:<port>/<hash>',
} as const;

/** Keys of policy files, in any mapping. */
export const REMOVED_POLICY_KEYS: ReadonlyMap<string, RemovedKey> = new Map([
  [
    'candidate',
    {
      effect: 'ignored',
      sentence:
        '"candidate" was removed and is ignored; to try out a limit, add it to "rate_limits" with "phase: monitoring"',
    },
  ],
  [
    'learned',
    {
      effect: 'refused',
      sentence:
        '"learned" was removed; write the estimate as "amount", a number or a value of the plan, or as ' +
        'from: first_call',
    },
  ],
]);
