import type { UnmatchedMode } from '../../policy/policy.js';
import { isSecretKey } from '../../policy/redact.js';
import type { NodeFields, StepSpec } from '../../policy/spec.js';
import { Wildcard } from '../../policy/values/value-matcher.js';
import { nearest } from '../../runtime/nearest-name.js';
import { shownStart } from '../../runtime/shown-address.js';
import type { FieldReader } from './field-reader.js';
import { type DerivedValue, differsByMore } from './read-derive.js';

/** Maximum number of values that are compared to a misspelled one. Each comparison takes time. */
const MAX_COMPARED = 100;

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
    const near = !isExact || values.size > MAX_COMPARED ? undefined : nearest(value, values);
    const [what, correct] = isExact
      ? ['', 'correct the value, or add a rule with this value']
      : ['a value that matches ', 'correct the pattern, or add a rule with such a value'];
    reader.warn(
      'value',
      `no rule of "derive" sets the entry "${shownStart(key)}" to ${what}"${shownStart(value)}", so no derived entry ` +
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
        `no descriptor with the key "${shownStart(entry)}" has the value "${shownStart(value)}", so this rule leads ` +
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
    reader.warn(field, `the derived entry is "${near}", not "${shownStart(key)}"; did you mean "${near}"?`);
  }
}
