import { type LoadOptions, loadPolicies } from '../config/files/load-policies.js';
import { formatProblem } from '../config/yaml/config-problem.js';
import { parseGoDuration } from '../config/yaml/go-duration.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { LEASE_FOR, LEASE_MAX } from '../policy/leases.js';
import { ALGORITHMS } from '../policy/policy.js';
import { type Io, usageError } from './io.js';

/** Options of the commands that load policies in the same way as a server. */
export const LOAD_OPTIONS = {
  'merge-domains': { type: 'boolean' },
  'default-algorithm': { type: 'string' },
  'lease-for': { type: 'string' },
  'hold-entry': { type: 'string' },
} as const;

export const LOAD_OPTIONS_HELP = `  --merge-domains  merge files that have the same domain, like MERGE_DOMAIN_CONFIG=true
  --default-algorithm <fixed_window|token_bucket>
                   algorithm of files that do not set one, like DEFAULT_ALGORITHM
  --lease-for <time>
                   lease of files that do not set one, like LEASE_FOR
  --hold-entry <key>
                   key of the entry that ends holds, like HOLD_ENTRY
`;

/** Converts the values of {@link LOAD_OPTIONS}. */
export function readLoadOptions(
  command: string,
  values: { readonly [Name in keyof typeof LOAD_OPTIONS]?: string | boolean | undefined },
): LoadOptions {
  const holdEntry = values['hold-entry'];
  const common = {
    mergeDomains: values['merge-domains'] === true,
    configMaps: true,
    ...(typeof holdEntry === 'string' && { holdEntry }),
    ...readLease(command, values['lease-for']),
  };
  const asked = values['default-algorithm'];
  if (asked === undefined) return common;
  const defaultAlgorithm = ALGORITHMS.find((algorithm) => algorithm === asked);
  if (defaultAlgorithm === undefined)
    throw usageError(command, `--default-algorithm must be one of ${ALGORITHMS.join(', ')}`);
  return { ...common, defaultAlgorithm };
}

/** Returns the option for `--lease-for`. The maximum number of tokens does not change any limit. */
function readLease(command: string, life: string | boolean | undefined): Pick<LoadOptions, 'defaultLease'> {
  if (typeof life !== 'string') return {};
  const forMicros = Number((parseGoDuration(life) ?? 0n) / 1000n);
  if (forMicros < LEASE_FOR.min || forMicros > LEASE_FOR.max)
    throw usageError(command, '--lease-for must be a duration from 5ms to 10s');
  return { defaultLease: { forMicros, max: LEASE_MAX.default, exact: true } };
}

/** Loads a policy. If it is invalid, prints every error to standard error and returns undefined. */
export function loadPolicy(name: string, options: LoadOptions, io: Pick<Io, 'err'>): PolicySet | undefined {
  const { policySet, errors } = loadPolicies([name], options);
  for (const error of errors) io.err(`${formatProblem(error)}\n`);
  return errors.length > 0 ? undefined : policySet;
}
