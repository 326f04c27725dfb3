import { safePrefix } from '../../runtime/shown-address.js';
import { type LoadOptions, type ReadPolicies, readDocuments } from '../files/load-policies.js';
import type { PreviousLoad } from '../read/resolve-domains.js';
import { boundProblems, type ConfigProblem, WHOLE_FILE } from '../yaml/config-problem.js';
import type { YamlValue } from '../yaml/yaml-document.js';
import { type DiscoveryCodec, RATE_LIMIT_CONFIG_TYPE, type Resource } from './discovery.js';
import { toDocument } from './rate-limit-config.js';

/** Maximum number of characters of a resource's name in messages. */
const MAX_NAME = 200;

/** Input of the thread that loads updates, as plain data. */
export interface UpdateRequest {
  readonly resources: readonly Resource[];
  readonly options: LoadOptions;
  readonly before: PreviousLoad;
}

/**
 * Reads and checks the resources of an update in the same way as the files of a directory. Messages name a resource by
 * its name, or by its position if it has none. `before` is the state after the last valid update. Never throws: all
 * problems are in `errors`, and if there are any, the rest of the result must not be used.
 */
export function readUpdate(
  resources: readonly Resource[],
  codec: DiscoveryCodec,
  options: LoadOptions,
  before?: PreviousLoad,
): ReadPolicies {
  const errors: ConfigProblem[] = [];
  const sources: { readonly name: string; readonly document: YamlValue }[] = [];
  resources.forEach((resource, index) => {
    const place = `resource ${index + 1}`;
    const refuse = (message: string): void => {
      errors.push({ file: place, ...WHOLE_FILE, path: '', message });
    };
    if (resource.typeUrl !== RATE_LIMIT_CONFIG_TYPE) {
      refuse(
        `the type of the resource is "${safePrefix(resource.typeUrl, 200)}"; send ${RATE_LIMIT_CONFIG_TYPE}`,
      );
      return;
    }
    try {
      const config = codec.decodeConfig(resource.value);
      const name = ((config['name'] ?? '') as string).slice(0, MAX_NAME) || place;
      sources.push({ name, document: toDocument(config) });
    } catch (error) {
      refuse(
        `the resource is not a valid RateLimitConfig (${(error as Error).message}); send a ` +
          'RateLimitConfig encoded as protobuf',
      );
    }
  });
  // The order has no meaning and differs between management servers, but all replicas must use the same order.
  sources.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const read = readDocuments(sources, options, before);
  return { ...read, errors: [...boundProblems(errors, errors.length, 'error'), ...read.errors] };
}
