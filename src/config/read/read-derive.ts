import { dirname, isAbsolute, join } from 'node:path';
import { UNKNOWN_KEY_PREFIX } from '../../policy/derive/derive.js';
import { normalisePath } from '../../policy/paths/normalise-path.js';
import { PathPattern } from '../../policy/paths/path-pattern.js';
import type { UnmatchedMode } from '../../policy/policy.js';
import { isCredential, isSecretKey, redacted } from '../../policy/redact.js';
import type { ConditionSpec, DeriveRuleSpec, NodeFields, StepSpec, TableSpec } from '../../policy/spec.js';
import { Wildcard } from '../../policy/values/value-matcher.js';
import { nearest } from '../../runtime/nearest-name.js';
import { safePrefix } from '../../runtime/shown-address.js';
import { ProblemList } from '../yaml/config-problem.js';
import { parseYaml, type YamlMap } from '../yaml/yaml-document.js';
import { FieldReader } from './field-reader.js';
import { type FieldValues, readFields, readMapping } from './field-values.js';
import { keysOf, POLICY_FIELDS } from './policy-fields.js';
import { warnOfMethod } from './read-matcher.js';

/** Reads the files that policies name. */
export interface TableFiles {
  /** Reads a file, unless it is too large. Throws an Error with a sentence if the file cannot be read. */
  read(file: string, maxBytes?: number): Uint8Array;
  /** '' if the file could not be read. */
  digestOf(file: string): string;
}

/** Result of reading `derive`. */
export interface DeriveFields {
  readonly steps: readonly StepSpec[];
  /** The values that rules set, with the places of the rules. */
  readonly values: readonly DerivedValue[];
  /** Files named by `sha256_file`, readable or not, with the problems of each. */
  readonly tableFiles: readonly ProblemList[];
}

/** A value that a rule of `derive` sets. */
export interface DerivedValue {
  readonly entry: string;
  readonly value: string;
  readonly rule: FieldReader;
}

const STEP_KEYS = keysOf('derive_item');

/**
 * Tells whether messages may show a key of the mapping at `path`, which is `derive` or below. Only keys that this
 * reader knows may be shown, because an unknown key may be an API key in the wrong place or at the wrong depth.
 */
export function showDeriveKey(path: string, key: string): boolean {
  if (/^derive\[\d+\]$/.test(path)) return STEP_KEYS.includes(key);
  return /^derive\[\d+\]\.rules\[\d+\]$/.test(path) && key === 'value';
}

/** Reads the items of `derive` of a policy file. Invalid items are reported and skipped. */
export function readDerive(items: readonly FieldReader[], files: TableFiles): DeriveFields {
  const steps: StepSpec[] = [];
  const set: DerivedValue[] = [];
  const tableFiles: ProblemList[] = [];
  const replaced = new Set<string>();
  const derived = new Set<string>();
  for (const reader of items) {
    const values = readMapping(reader, 'derive_item');
    const { entry = '' } = values;
    const from = (values.from ?? []).map(({ value }) => value);
    for (const source of from) {
      const near = derived.has(source) ? undefined : nearest(source, derived, 1);
      if (near !== undefined && differsByMore(source, near)) {
        reader.warn(
          'from',
          `an earlier item derives the entry "${near}", not "${source}"; did you mean "${near}"?`,
        );
      }
      if (!replaced.has(source)) continue;
      reader.error(
        'from',
        `an earlier item replaces the entry "${source}", so the entry never reaches this item; remove ` +
          'the key of that entry from "from"',
      );
    }
    derived.add(entry);
    const hasTable = reader.has('sha256') || reader.has('sha256_file');
    if (hasTable === reader.has('rules')) {
      reader.problems.error(
        reader.map.at,
        reader.path,
        'an item of "derive" must have either "rules" or a key table ("sha256", "sha256_file" or both); ' +
          'use exactly one of the two',
      );
      continue;
    }
    if (hasTable) {
      const step = readTableStep(reader, values, from, files, tableFiles);
      if (step === undefined) continue;
      steps.push(step);
      replaced.add(step.source);
    } else {
      const rules = readRules(values.rules ?? [], from);
      steps.push({ kind: 'rules', entry, sources: from, rules: rules.map(({ spec }) => spec) });
      for (const { spec, reader: rule } of rules) set.push({ entry, value: spec.value, rule });
    }
  }
  return { steps, values: set, tableFiles };
}

function readTableStep(
  reader: FieldReader,
  { entry = '', sha256: inline, sha256_file: name }: FieldValues<(typeof POLICY_FIELDS)['derive_item']>,
  from: readonly string[],
  files: TableFiles,
  tableFiles: ProblemList[],
): TableSpec | undefined {
  const [source] = from;
  if (source === undefined) return undefined;
  if (from.length !== 1) {
    reader.error('from', 'a SHA-256 table derives from exactly one entry; keep only one key in "from"');
  }
  const table = new Map<string, string>();
  if (inline !== undefined) readKeyTable(inline, table);
  if (name !== undefined) tableFiles.push(readTableFile(reader, name, files, table));
  return { kind: 'table', entry, source, table };
}

/** Returns the files that `derive` names as key tables, readable or not, so that they are not taken for policies. */
export function tableNames(root: FieldReader): readonly string[] {
  return deriveItems(root).flatMap(({ fields }) => {
    const name = fields.get('sha256_file')?.value;
    return name?.kind === 'scalar' && name.text !== '' ? [tablePath(root, name.text)] : [];
  });
}

/**
 * Returns the entry keys that `derive` declares secret, even if it has errors. Called before documents are read,
 * because messages about one document must not show secrets of another.
 */
export function declaredSecrets(root: FieldReader): readonly string[] {
  return deriveItems(root).flatMap(({ fields }) => {
    const from = fields.get('from')?.value;
    if (from?.kind !== 'list' || !(fields.has('sha256') || fields.has('sha256_file'))) return [];
    return from.items.flatMap((source) => (source.kind === 'scalar' ? [source.text] : []));
  });
}

function deriveItems(root: FieldReader): readonly YamlMap[] {
  const derive = root.map.fields.get('derive')?.value;
  return derive?.kind === 'list' ? derive.items.filter((item) => item.kind === 'map') : [];
}

function tablePath(reader: FieldReader, name: string): string {
  return isAbsolute(name) ? name : join(dirname(reader.problems.file), name);
}

function readTableFile(
  reader: FieldReader,
  name: string,
  files: TableFiles,
  table: Map<string, string>,
): ProblemList {
  const file = tablePath(reader, name);
  const problems = new ProblemList(file);
  let bytes: Uint8Array;
  try {
    bytes = files.read(file);
  } catch (error) {
    reader.error('sha256_file', error instanceof Error ? error.message : String(error));
    return problems;
  }
  const document = parseYaml(bytes, problems, { secret: true });
  if (document === undefined) return problems;
  if (document.kind !== 'map') {
    problems.error(
      document.at,
      '',
      'the table must be a mapping; write <SHA-256 of an API key>: <tenant> on each line',
    );
    return problems;
  }
  readKeyTable(new FieldReader(document, '', problems), table);
  problems.sort();
  return problems;
}

/**
 * Adds the API keys of one mapping, `<SHA-256 of the key, hex>: <tenant>`, to `table`. Messages and paths name items by
 * position and never by content, because a user may have written a key instead of its digest.
 */
function readKeyTable(reader: FieldReader, table: Map<string, string>): void {
  for (const field of reader.map.fields.values()) {
    const path = `${reader.path}[${field.index}]`;
    if (!/^[0-9a-f]{64}$/i.test(field.key)) {
      reader.problems.error(
        field.keyAt,
        path,
        'this is not a SHA-256 digest (64 hex digits); write the digest of the API key, never the key itself',
      );
      continue;
    }
    if (field.value.kind !== 'scalar' || field.value.text === '' || field.value.text === '~') {
      reader.problems.error(
        field.value.at,
        path,
        'the tenant of this digest is missing; write the name of the tenant as a string',
      );
      continue;
    }
    const tenant = field.value.text;
    if (tenant.startsWith(UNKNOWN_KEY_PREFIX)) {
      reader.problems.error(
        field.value.at,
        path,
        `a tenant must not begin with "${UNKNOWN_KEY_PREFIX}", which is reserved for keys that are not ` +
          'listed; rename the tenant',
      );
      continue;
    }
    const digest = field.key.toLowerCase();
    const other = table.get(digest);
    if (other !== undefined && other !== tenant) {
      reader.problems.error(
        field.keyAt,
        path,
        `the key with the digest ${digest.slice(0, 8)}… has two tenants, "${other}" and "${tenant}"; ` +
          'keep only one tenant',
      );
      continue;
    }
    table.set(digest, tenant);
  }
}

/** A rule with its place. */
interface ReadRule {
  readonly spec: DeriveRuleSpec;
  readonly reader: FieldReader;
}

function readRules(items: readonly FieldReader[], from: readonly string[]): readonly ReadRule[] {
  const rules: ReadRule[] = [];
  const earlier = new EarlierRules();
  for (const item of items) {
    item.expectKeys([...from, ...keysOf('derive_rule')]);
    // If a source is named "value", the value of the rule cannot be distinguished from a condition.
    if (from.includes('value')) {
      item.error(
        'value',
        'rules cannot derive from an entry with the key "value"; configure Envoy to send the entry with another key',
      );
      continue;
    }
    const { value = '' } = readFields(item, POLICY_FIELDS.derive_rule);
    const conditions = from.map((source) => readCondition(item, source));
    rules.push({ spec: { conditions, value }, reader: item });
    const other = earlier.add(conditions, item.path);
    if (other !== undefined) {
      item.problems.warn(
        item.map.at,
        item.path,
        `this rule never applies, because ${other} matches the same requests and comes first; remove one of the two`,
      );
    }
  }
  return rules;
}

/** Maximum number of conditions of a rule that is compared to more general rules. Each one doubles the work. */
const MAX_COMPARED = 4;

/** Finds rules that never apply because an earlier rule has the same conditions, or only some of them. */
class EarlierRules {
  /** Path of the first rule with these conditions. */
  private readonly paths = new Map<string, string>();

  /** Adds a rule. Returns the path of an earlier rule that matches all requests that this rule matches. */
  add(conditions: readonly ConditionSpec[], path: string): string | undefined {
    const names = conditions.map(conditionName);
    const given = names.flatMap((name, at) => (name === null ? [] : [at]));
    const left = given.length > MAX_COMPARED ? [] : given;
    let found: string | undefined;
    // Each bit of the mask leaves one condition out.
    for (let mask = 0; mask < 1 << left.length && found === undefined; mask++) {
      const some = names.map((name, at) => {
        const bit = left.indexOf(at);
        return bit >= 0 && (mask & (1 << bit)) !== 0 ? null : name;
      });
      found = this.paths.get(JSON.stringify(some));
    }
    const whole = JSON.stringify(names);
    if (!this.paths.has(whole)) this.paths.set(whole, path);
    return found;
  }
}

/** Returns a name that is equal for equal conditions; null for any value. */
function conditionName(condition: ConditionSpec): string | null {
  if (condition === undefined) return null;
  return typeof condition === 'string' ? `=${condition}` : condition.pattern.replace(/\/+$/, '');
}

/** Matches keys of entries whose value is a path. */
const PATH_KEY = /(?:^|[._:-])path$/i;

/** Warns about a text that is compared literally, but looks like a pattern or a path. */
function warnOfLiteralCondition(rule: FieldReader, source: string, text: string): void {
  const hasWildcard = /[*{]/.test(text);
  const isPath = PATH_KEY.test(source) || (hasWildcard && text.includes('/'));
  if (!hasWildcard && !isPath) {
    warnOfMethod(rule, source, source, text);
    return;
  }
  const literally =
    'the value does not begin with "/", so it is compared literally' +
    (hasWildcard ? ', including its wildcards' : '');
  const meant = isCredential(source) ? 'a "/" at the beginning' : `"/${safePrefix(text, 100)}"`;
  rule.warn(source, isPath ? `${literally}; write ${meant}` : `${literally}; only paths can have wildcards`);
}

function readCondition(rule: FieldReader, source: string): ConditionSpec {
  const text = rule.text(source);
  if (text === undefined) return text;
  if (!text.startsWith('/')) {
    warnOfLiteralCondition(rule, source, text);
    return text;
  }
  const pattern = PathPattern.parse(text);
  if (typeof pattern === 'string') {
    const shown = isCredential(source) ? redacted(text) : safePrefix(text, 100);
    rule.error(source, `"${shown}" is not a valid path pattern: ${pattern}`);
    return undefined;
  }
  const encoded = /%(?!2F)[0-9a-fA-F]{2}/.exec(text)?.[0];
  if (encoded !== undefined) {
    const plain = normalisePath(`/${encoded}`).slice(1);
    rule.warn(
      source,
      `"${encoded}" never matches, because paths are decoded before they are matched; write "${plain || encoded}"`,
    );
  }
  if (/[?#].*=/.test(text)) {
    rule.warn(
      source,
      'query strings are removed before paths are matched, and "?" matches any one character; remove the query string',
    );
  }
  return { pattern: text };
}

/** Returns whether two keys differ in more than their digits, so that one of them may be a misspelling. */
function differsByMore(key: string, other: string): boolean {
  return key.replaceAll(/\d/g, '') !== other.replaceAll(/\d/g, '');
}

/** Maximum number of values that are compared to a misspelled one. Each comparison takes time. */
const MAX_COMPARED_VALUES = 100;

/** The derived entries of a domain, to warn about descriptors that were meant to match them. */
export class DerivedEntries {
  /** The values that rules set; undefined for an entry whose values come from a table, because a table changes. */
  readonly #values = new Map<string, Set<string> | undefined>();
  /** Keys of the entries that `derive` reads, which are not misspelled. */
  readonly #sources = new Set<string>();
  readonly #secretKeys: ReadonlySet<string>;
  /**
   * The exact values that descriptors have for each key. Undefined for a key of which other descriptors are wanted or
   * misspelled, so that nothing is said about the values of `derive`.
   */
  readonly #matched = new Map<string, Set<string> | undefined>();
  /** The derived key that a misspelled key most likely means. */
  readonly #meant = new Map<string, string | undefined>();

  constructor(steps: readonly StepSpec[], secretKeys: ReadonlySet<string>) {
    this.#secretKeys = secretKeys;
    for (const step of steps) {
      for (const source of step.kind === 'rules' ? step.sources : [step.source]) this.#sources.add(source);
      const known = this.#values.has(step.entry) ? this.#values.get(step.entry) : new Set<string>();
      if (step.kind === 'rules') for (const { value } of step.rules) known?.add(value);
      this.#values.set(step.entry, step.kind === 'rules' ? known : undefined);
    }
  }

  /**
   * Warns if a descriptor matches no derived entry, but seems to be meant for one. `onUnmatched` applies to the level
   * of the descriptor.
   */
  check(
    reader: FieldReader,
    { key, value, matcher }: Pick<NodeFields, 'key' | 'value' | 'matcher'>,
    onUnmatched: UnmatchedMode,
  ): void {
    if (this.#values.size === 0) return;
    this.checkKey(reader, 'key', key);
    const values = this.#values.get(key);
    const hasValue = matcher === undefined && value !== '';
    const isExact = hasValue && !value.includes('*');
    const isKnown = isExact && values?.has(value) === true && onUnmatched === 'warn';
    const exact = this.#matched.has(key) ? this.#matched.get(key) : new Set<string>();
    this.#matched.set(key, isKnown ? exact?.add(value) : undefined);
    if (values === undefined || !hasValue || values.has(value) || isSecretKey(key, this.#secretKeys)) return;
    const pattern = new Wildcard(value);
    if (!isExact && [...values].some((one) => pattern.matches(one))) return;
    const near = !isExact || values.size > MAX_COMPARED_VALUES ? undefined : nearest(value, values);
    const [what, correct] = isExact
      ? ['', 'correct the value, or add a rule with this value']
      : ['a value that matches ', 'correct the pattern, or add a rule with such a value'];
    reader.warn(
      'value',
      `no rule of "derive" sets the entry "${safePrefix(key)}" to ${what}"${safePrefix(value)}", so no derived entry ` +
        `matches this descriptor; ${near === undefined ? correct : `did you mean "${near}"?`}`,
    );
  }

  /** Warns about values of rules that no descriptor has, once all descriptors are checked. */
  checkRules(values: readonly DerivedValue[]): void {
    for (const { entry, value, rule } of values) {
      const exact = this.#matched.get(entry);
      // A later item may read the entry.
      if (exact === undefined || this.#sources.has(entry) || isSecretKey(entry, this.#secretKeys)) continue;
      if (exact.has(value) || rule.problems.errorCount > 0) continue;
      rule.warn(
        'value',
        `no descriptor with the key "${safePrefix(entry)}" has the value "${safePrefix(value)}", so this rule leads ` +
          'to no limit; correct the value, or add a descriptor with it (or on_unmatched: ignore, if no limit is meant)',
      );
    }
  }

  /** Warns if a key differs from a derived entry in one letter. */
  checkKey(reader: FieldReader, field: string, key: string): void {
    if (this.#values.has(key) || this.#sources.has(key)) return;
    if (!this.#meant.has(key)) this.#meant.set(key, nearest(key, this.#values.keys(), 1));
    const near = this.#meant.get(key);
    if (near === undefined || !differsByMore(key, near)) return;
    reader.warn(field, `the derived entry is "${near}", not "${safePrefix(key)}"; did you mean "${near}"?`);
  }
}
