import type { StoreFailurePolicy } from '../../limiter/failure-policy.js';
import {
  ALGORITHMS,
  type Algorithm,
  DEFAULT_UNMATCHED_MODE,
  UNMATCHED_MODES,
  type UnmatchedMode,
} from '../../policy/policy.js';
import {
  type DeniedResponse,
  fixedPhase,
  type HeaderFamilies,
  type PhaseSchedule,
} from '../../policy/rule.js';
import type { Position } from '../yaml/config-problem.js';
import type { FieldReader } from '../yaml/field-reader.js';
import { PlansReader } from './plans/read-plans.js';
import { type PolicySource, placeName } from './policy-source.js';
import { type DeriveFields, type ReadFile, readDerive } from './read-derive.js';
import { readPhase } from './read-phase.js';
import {
  readDeniedResponse,
  readRequestHeaders,
  readResponseHeaders,
  readStoreFailure,
} from './read-response.js';
import { readEnforcePercent } from './read-rules.js';

/** The settings at the top of a domain's files. */
export interface RootSettings {
  readonly phase: PhaseSchedule;
  /** The default of the environment if the files set none. */
  readonly algorithm: Algorithm;
  /** Absent if the environment decides. */
  readonly responseHeaders: HeaderFamilies | undefined;
  /** Absent if the environment decides. */
  readonly requestHeaders: HeaderFamilies | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
  /** Absent if the environment decides. */
  readonly decisionMetadata: boolean | undefined;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly onUnmatched: UnmatchedMode;
  /** See Rule.enforcePercent. */
  readonly enforcePercent: number;
  readonly derived: DeriveFields;
  readonly plans: PlansReader | undefined;
}

/**
 * Reads the settings of one domain from all its files. Any file may have a setting, which then applies to the domain.
 * Several files may have it only with the same value. Only one file may have `derive`, because its items are ordered.
 * `defaultAlgorithm` comes from the environment.
 */
export function readRootSettings(
  sources: readonly PolicySource[],
  readFile: ReadFile,
  defaultAlgorithm: Algorithm,
): RootSettings {
  const phase = agreed(sources, 'phase', readPhase);
  const algorithm = agreed(sources, 'algorithm', (root) => root.choice('algorithm', ALGORITHMS));
  const responseHeaders = agreed(sources, 'response_headers', readResponseHeaders);
  const requestHeaders = agreed(sources, 'request_headers', readRequestHeaders);
  const onStoreFailure = agreed(sources, 'on_store_failure', readStoreFailure);
  const enforcePercent = agreed(sources, 'enforce_percent', readEnforcePercent);
  return {
    phase: phase ?? fixedPhase('active'),
    algorithm: algorithm ?? defaultAlgorithm,
    responseHeaders,
    requestHeaders,
    deniedResponse: agreed(sources, 'denied_response', readDeniedResponse),
    decisionMetadata: agreed(sources, 'decision_metadata', (root) => root.boolean('decision_metadata')),
    onStoreFailure: onStoreFailure ?? 'error',
    onUnmatched: agreed(sources, 'on_unmatched', readOnUnmatched) ?? DEFAULT_UNMATCHED_MODE,
    enforcePercent: enforcePercent ?? 100,
    derived: readOneDerive(sources, readFile),
    plans: readOnePlans(sources),
  };
}

/** Reads `on_unmatched` of a file or a node. */
export function readOnUnmatched(reader: FieldReader): UnmatchedMode | undefined {
  return reader.choice('on_unmatched', UNMATCHED_MODES);
}

function agreed<T>(
  sources: readonly PolicySource[],
  key: string,
  read: (root: FieldReader) => T | undefined,
): T | undefined {
  let first: { readonly value: T; readonly file: string; readonly at: Position } | undefined;
  for (const { file, root } of sources) {
    const value = read(root);
    if (value === undefined) continue;
    if (first === undefined) {
      first = { value, file, at: root.at(key) };
    } else if (canonical(value) !== canonical(first.value)) {
      const other = placeName(first.file, first.at);
      root.error(
        key,
        `"${key}" differs from its value in ${other}, a file of the same domain; use the same value in ` +
          'both files, or set it in only one',
      );
    }
  }
  return first?.value;
}

/** Serializes a value. JSON would turn the Infinity of a phase into null. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'number' ? String(part) : part));
}

function readOneDerive(sources: readonly PolicySource[], readFile: ReadFile): DeriveFields {
  const derived = onlyOnce(sources, 'derive', 'these items').map(({ root }) => readDerive(root, readFile));
  return {
    steps: derived.flatMap(({ steps }) => steps),
    tableFiles: derived.flatMap(({ tableFiles }) => tableFiles),
  };
}

function readOnePlans(sources: readonly PolicySource[]): PlansReader | undefined {
  const [plans] = onlyOnce(sources, 'plans', 'the limits and plans')
    .map(({ root }) => root.mapping('plans'))
    .filter((reader) => reader !== undefined)
    .map((reader) => new PlansReader(reader));
  return plans;
}

/** Returns the files that have a key, which only one of a domain may have. */
function onlyOnce(sources: readonly PolicySource[], key: string, what: string): readonly PolicySource[] {
  const found = sources.filter(({ root }) => root.field(key) !== undefined);
  const [first, ...others] = found;
  for (const { root } of others) {
    const other = placeName((first as PolicySource).file, (first as PolicySource).root.at(key));
    root.error(
      key,
      `"${key}" is already set in ${other}, a file of the same domain; move ${what} to that file`,
    );
  }
  return found;
}
