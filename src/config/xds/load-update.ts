import { createHash } from 'node:crypto';
import { sha256Hex } from '../../policy/names/sha256.js';
import { shownStart } from '../../runtime/shown-address.js';
import { type LoadOptions, type ReadPolicies, readDocuments } from '../files/load-policies.js';
import type { InEffect } from '../read/resolve-domains.js';
import { allSecretKeys } from '../read/secret-keys.js';
import { boundProblems, type ConfigProblem, WHOLE_FILE } from '../yaml/config-problem.js';
import type { YamlValue } from '../yaml/yaml-document.js';
import {
  type DiscoveryCodec,
  type DiscoveryResponse,
  RATE_LIMIT_CONFIG_TYPE,
  type Resource,
} from './discovery.js';
import { toDocument } from './rate-limit-config.js';

/** Maximum number of characters of a resource's name in messages. */
const MAX_NAME = 200;

/** Input of the thread that loads updates, as plain data. */
export interface UpdateRequest {
  readonly response: DiscoveryResponse;
  /** Digest of the last rejected response. */
  readonly rejected: string | undefined;
  readonly options: LoadOptions;
  readonly before: InEffect;
}

/**
 * Reads a DiscoveryResponse with {@link readUpdate}, and returns its digest as `contents`. A response with the digest
 * `rejected` is not read and returns an error with this reason. Never throws.
 */
export function readResponse(
  { response, rejected, options, before }: UpdateRequest,
  codec: DiscoveryCodec,
): ReadPolicies {
  const contents = digestOf(response);
  if (contents !== rejected) return { ...readUpdate(response.resources, codec, options, before), contents };
  const message = 'the update is the same as the previously rejected update; correct the policies';
  return {
    specs: new Map(Array.from(before.inEffect.keys(), (domain) => [domain, 'kept'])),
    version: '',
    secretKeys: allSecretKeys(before.inEffect.values()),
    errors: [{ file: 'update', ...WHOLE_FILE, path: '', message }],
    warnings: [],
    domains: [],
    files: [],
    contents,
    refusesStart: false,
    fingerprint: '',
    addresses: [],
    memory: before.memory,
  };
}

/** Returns a digest that does not depend on the order of the resources. go-control-plane sends them in random order. */
function digestOf({ resources, versionInfo }: DiscoveryResponse): string {
  const digests = resources.map(({ typeUrl, value }) =>
    createHash('sha256').update(`${typeUrl}:`).update(value).digest('hex'),
  );
  return sha256Hex(`${digests.sort().join(' ')}:${versionInfo}`);
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
  before?: InEffect,
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
        `the type of the resource is "${shownStart(resource.typeUrl, 200)}"; send ${RATE_LIMIT_CONFIG_TYPE}`,
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
