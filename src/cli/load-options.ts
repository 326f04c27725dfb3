import type { LoadOptions } from '../config/files/load-policies.js';
import { ALGORITHMS } from '../policy/policy.js';

/** Options of commands that load policies as a server would. */
export const LOAD_OPTIONS = {
  'merge-domains': { type: 'boolean' },
  'default-algorithm': { type: 'string' },
} as const;

/** Their part of a command's help. */
export const LOAD_OPTIONS_HELP = `  --merge-domains  merge files with one domain, as a server with MERGE_DOMAIN_CONFIG=true does
  --default-algorithm <fixed_window|token_bucket>
                   of files that name no algorithm, as a server with DEFAULT_ALGORITHM takes them
`;

/** What {@link LOAD_OPTIONS} say; a sentence where they make no sense. */
export function readLoadOptions(
  command: string,
  values: { readonly [Name in keyof typeof LOAD_OPTIONS]?: string | boolean | undefined },
): LoadOptions | string {
  const common = { mergeDomains: values['merge-domains'] === true, configMaps: true };
  const asked = values['default-algorithm'];
  if (asked === undefined) return common;
  const defaultAlgorithm = ALGORITHMS.find((algorithm) => algorithm === asked);
  if (defaultAlgorithm === undefined) {
    return `weir ${command}: --default-algorithm is one of ${ALGORITHMS.join(', ')}; see weir ${command} --help\n`;
  }
  return { ...common, defaultAlgorithm };
}
