import { type ConfigProblem, WHOLE_FILE } from '../config-problem.js';
import {
  type LoadedPolicies,
  type LoadOptions,
  loadDocuments,
  type PreviousPolicies,
} from '../load-policies.js';
import type { YamlValue } from '../yaml-document.js';
import { type DiscoveryCodec, RATE_LIMIT_CONFIG_TYPE, type Resource } from './discovery.js';
import { toDocument } from './rate-limit-config.js';

/** So much of a resource's name stands in messages. */
const MAX_NAME = 200;

/**
 * Checks and compiles the resources of one update, as files of a directory are. Messages name a resource by its name, one without a name by
 * its place. `previous` is what the last good update gave. Never throws: everything wrong is in `errors`, and then nothing of the rest is to
 * be used.
 */
export function loadUpdate(
  resources: readonly Resource[],
  codec: DiscoveryCodec,
  options: LoadOptions,
  previous?: PreviousPolicies,
): LoadedPolicies {
  const errors: ConfigProblem[] = [];
  const sources: { readonly name: string; readonly document: YamlValue }[] = [];
  resources.forEach((resource, index) => {
    const place = `resource ${index + 1}`;
    const refuse = (message: string): void => {
      errors.push({ file: place, ...WHOLE_FILE, path: '', message });
    };
    if (resource.typeUrl !== RATE_LIMIT_CONFIG_TYPE) {
      refuse(`its type is "${resource.typeUrl.slice(0, 200)}"; send ${RATE_LIMIT_CONFIG_TYPE}`);
      return;
    }
    try {
      const config = codec.decodeConfig(resource.value);
      const name = config.name.slice(0, MAX_NAME) || place;
      sources.push({ name, document: toDocument(config) });
    } catch (error) {
      refuse(
        `its bytes are no RateLimitConfig (${(error as Error).message}); send one as protobuf encodes it`,
      );
    }
  });
  // Their order means nothing, and differs from one management server to the next: replicas must agree all the same.
  sources.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const loaded = loadDocuments(sources, options, previous);
  return { ...loaded, errors: [...errors, ...loaded.errors] };
}
