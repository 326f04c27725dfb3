import type { StoreFailurePolicy } from '../../limiter/failure-policy.js';
import type { LeaseSpec } from '../../policy/leases.js';
import type { Algorithm, DomainSettings, UnmatchedMode } from '../../policy/policy.js';
import { fixedPhase, type PhaseSchedule } from '../../policy/rule.js';
import type { Position } from '../yaml/config-problem.js';
import type { FieldReader } from './field-reader.js';
import { expectKeysOf, phaseOf, readFields } from './field-values.js';
import { PlansReader } from './plans/read-plans.js';
import { POLICY_FIELDS } from './policy-fields.js';
import { type PolicySource, placeName } from './policy-source.js';
import { type DeriveFields, readDerive, type TableFiles } from './read-derive.js';
import { readLease } from './read-leases.js';
import { answersOf } from './read-response.js';

/** The settings at the top of a domain's files, and what else is there. */
export interface RootSettings {
  readonly domain: DomainSettings;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly onUnmatched: UnmatchedMode;
  /** See Rule.enforcePercent. */
  readonly enforcePercent: number;
  readonly derived: DeriveFields;
  readonly plans: PlansReader | undefined;
  readonly lease: LeaseSpec | undefined;
  /** The descriptors of each file. */
  readonly descriptors: readonly (readonly FieldReader[])[];
}

/**
 * Reads the settings of one domain from all its files. Any file may have a setting, which then applies to the domain.
 * Several files may have it only with the same value. Only one file may have `derive`, because its items are ordered.
 * `defaultAlgorithm` and `defaultLease` come from the environment.
 */
export function readRootSettings(
  sources: readonly PolicySource[],
  tables: TableFiles,
  defaultAlgorithm: Algorithm,
  defaultLease: LeaseSpec | undefined,
): RootSettings {
  const files = sources.map(valuesOf);
  const derived = onlyOnce(files, 'derive', 'these items').flatMap(({ values }) => values.derive ?? []);
  const [plans] = onlyOnce(files, 'plans', 'the limits and plans').flatMap(
    ({ values }) => values.plans ?? [],
  );
  const { phase, on_store_failure: failure, on_unmatched: unmatched, enforce_percent: percent } = SETTINGS;
  return {
    domain: {
      responseHeaders: agreed(files, 'response_headers'),
      requestHeaders: agreed(files, 'request_headers'),
      deniedResponse: agreed(files, 'denied_response'),
      decisionMetadata: agreed(files, 'decision_metadata'),
      overrideAlgorithm: agreed(files, 'algorithm') ?? defaultAlgorithm,
    },
    phase: agreed(files, 'phase') ?? fixedPhase(phase.default),
    onStoreFailure: agreed(files, 'on_store_failure') ?? failure.default,
    onUnmatched: agreed(files, 'on_unmatched') ?? unmatched.default,
    enforcePercent: agreed(files, 'enforce_percent') ?? percent.default,
    derived: readDerive(derived, tables),
    plans: plans && new PlansReader(plans),
    lease: agreed(files, 'lease') ?? defaultLease,
    descriptors: files.map(({ values }) => values.descriptors ?? []),
  };
}

/** The keys of a file except for the domain, which is read before all others. */
const { domain: _, ...SETTINGS } = POLICY_FIELDS.file;

/** A file with its values, and the settings that several files may have, by key. */
type FileValues = ReturnType<typeof valuesOf>;

function valuesOf({ file, root }: PolicySource) {
  expectKeysOf(root, 'file');
  const values = readFields(root, SETTINGS);
  const answers = answersOf(values);
  const settings = {
    phase: phaseOf(values.phase),
    algorithm: values.algorithm,
    response_headers: answers.responseHeaders,
    request_headers: answers.requestHeaders,
    denied_response: answers.deniedResponse,
    decision_metadata: values.decision_metadata,
    on_store_failure: answers.onStoreFailure,
    on_unmatched: values.on_unmatched,
    enforce_percent: values.enforce_percent,
    lease: values.lease && readLease(values.lease),
  };
  return { file, root, values, settings };
}

/** Returns the value of a setting. Reports files that differ from the first one that has it. */
function agreed<Key extends keyof FileValues['settings']>(
  files: readonly FileValues[],
  key: Key,
): FileValues['settings'][Key] {
  type Value = FileValues['settings'][Key];
  let first: { readonly value: Value; readonly file: string; readonly at: Position } | undefined;
  for (const { file, root, settings } of files) {
    const value = settings[key];
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

/** Returns the files that have a key, which only one of a domain may have. */
function onlyOnce(files: readonly FileValues[], key: string, what: string): readonly FileValues[] {
  const found = files.filter(({ root }) => root.field(key) !== undefined);
  const [first, ...others] = found;
  for (const { root } of others) {
    const other = placeName((first as FileValues).file, (first as FileValues).root.at(key));
    root.error(
      key,
      `"${key}" is already set in ${other}, a file of the same domain; move ${what} to that file`,
    );
  }
  return found;
}
