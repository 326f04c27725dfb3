import {
  buildPolicies,
  inEffectOf,
  type LoadedPolicies,
  type LoadOptions,
  type PreviousPolicies,
  readDocuments,
} from '../../../src/config/files/load-policies.js';
import type { DiscoveryCodec, Resource } from '../../../src/config/xds/discovery.js';
import { readUpdate } from '../../../src/config/xds/load-update.js';

/** Reads documents and builds their policies, in this thread. */
export function loadDocuments(
  documents: Parameters<typeof readDocuments>[0],
  options: LoadOptions = {},
  previous?: PreviousPolicies,
): LoadedPolicies {
  return buildPolicies(readDocuments(documents, options, inEffectOf(previous)), previous?.policySet);
}

/** Reads the resources of an update and builds their policies, in this thread. */
export function loadUpdate(
  resources: readonly Resource[],
  codec: DiscoveryCodec,
  options: LoadOptions,
): LoadedPolicies {
  return buildPolicies(readUpdate(resources, codec, options, inEffectOf(undefined)), undefined);
}
