import type { StoreFailurePolicy } from '../../limiter/failure-policy.js';
import type { Algorithm, UnmatchedMode } from '../../policy/policy.js';
import {
  type DeniedResponse,
  fixedPhase,
  type HeaderFamilies,
  type PhaseSchedule,
} from '../../policy/rule.js';
import type { Position } from '../yaml/config-problem.js';
import type { FieldReader } from '../yaml/field-reader.js';
import { expectKeysOf, type FieldValues, readFields } from './field-values.js';
import { PlansReader } from './plans/read-plans.js';
import { POLICY_FIELDS } from './policy-fields.js';
import { type PolicySource, placeName } from './policy-source.js';
import { type DeriveFields, type ReadFile, readDerive } from './read-derive.js';
import { phaseOf } from './read-phase.js';
import { type Answers, answersOf } from './read-response.js';

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
  /** The descriptors of each file. */
  readonly descriptors: readonly (readonly FieldReader[])[];
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
  const files = sources.map((source): FileValues => {
    expectKeysOf(source.root, 'file');
    const values = readFields(source.root, SETTINGS);
    return { ...source, values, phase: phaseOf(values.phase), answers: answersOf(values) };
  });
  const { file: settings } = POLICY_FIELDS;
  return {
    phase: agreed(files, 'phase', ({ phase }) => phase) ?? fixedPhase(settings.phase.default),
    algorithm: agreed(files, 'algorithm', ({ values }) => values.algorithm) ?? defaultAlgorithm,
    responseHeaders: agreed(files, 'response_headers', ({ answers }) => answers.responseHeaders),
    requestHeaders: agreed(files, 'request_headers', ({ answers }) => answers.requestHeaders),
    deniedResponse: agreed(files, 'denied_response', ({ answers }) => answers.deniedResponse),
    decisionMetadata: agreed(files, 'decision_metadata', ({ values }) => values.decision_metadata),
    onStoreFailure:
      agreed(files, 'on_store_failure', ({ answers }) => answers.onStoreFailure) ??
      settings.on_store_failure.default,
    onUnmatched:
      agreed(files, 'on_unmatched', ({ values }) => values.on_unmatched) ?? settings.on_unmatched.default,
    enforcePercent:
      agreed(files, 'enforce_percent', ({ values }) => values.enforce_percent) ??
      settings.enforce_percent.default,
    derived: readOneDerive(files, readFile),
    plans: readOnePlans(files),
    descriptors: files.map(({ values }) => values.descriptors ?? []),
  };
}

/** The keys of a file except for the domain, which is read before all others. */
const { domain: _, ...SETTINGS } = POLICY_FIELDS.file;

/** A file with its settings. */
interface FileValues extends PolicySource {
  readonly values: FieldValues<typeof SETTINGS>;
  readonly phase: PhaseSchedule | undefined;
  readonly answers: Answers;
}

function agreed<T>(
  files: readonly FileValues[],
  key: string,
  read: (values: FileValues) => T | undefined,
): T | undefined {
  let first: { readonly value: T; readonly file: string; readonly at: Position } | undefined;
  for (const one of files) {
    const { file, root } = one;
    const value = read(one);
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

function readOneDerive(files: readonly FileValues[], readFile: ReadFile): DeriveFields {
  const derived = onlyOnce(files, 'derive', 'these items').map(({ values }) =>
    readDerive(values.derive ?? [], readFile),
  );
  return {
    steps: derived.flatMap(({ steps }) => steps),
    tableFiles: derived.flatMap(({ tableFiles }) => tableFiles),
  };
}

function readOnePlans(files: readonly FileValues[]): PlansReader | undefined {
  const [plans] = onlyOnce(files, 'plans', 'the limits and plans').flatMap(
    ({ values }) => values.plans ?? [],
  );
  return plans && new PlansReader(plans);
}

/** Returns the files that have a key, which only one of a domain may have. */
function onlyOnce(files: readonly FileValues[], key: string, what: string): readonly FileValues[] {
  const found = files.filter(({ root }) => root.field(key) !== undefined);
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
