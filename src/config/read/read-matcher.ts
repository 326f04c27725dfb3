import { parseBlock } from '../../policy/values/cidr.js';
import { patternSize } from '../../policy/values/regex-matcher.js';
import type { ValueMatcher } from '../../policy/values/value-matcher.js';
import type { FieldReader, Located } from '../yaml/field-reader.js';

const FIELDS = [
  ['value_cidr', 'cidr'],
  ['value_regex', 'regex'],
] as const;

/**
 * Reads `value_cidr` or `value_regex` of a node; undefined where it has neither. Of items with errors only the good
 * ones are given.
 */
export function readMatcher(reader: FieldReader): ValueMatcher | undefined {
  const [first, second] = FIELDS.filter(([field]) => reader.field(field) !== undefined);
  if (first === undefined) {
    for (const [field] of FIELDS) {
      // A null would leave a node for every value: nobody means that.
      if (reader.has(field))
        reader.error(field, `"${field}" is empty; write what values match, or remove it`);
    }
    return undefined;
  }
  if (second !== undefined) {
    reader.error(second[0], `"${second[0]}" and "${first[0]}" exclude each other; use two descriptors`);
  }
  const [field, kind] = first;
  if (reader.field('value') !== undefined) {
    reader.error(field, `"${field}" stands in place of "value"; remove one of the two`);
  }
  /** With its size. */
  const items = new Map<string, number>();
  for (const { value, at, path } of textsOf(reader, field)) {
    const item = kind === 'cidr' ? readBlock(value) : readPattern(value);
    if ('error' in item) reader.problems.error(at, path, item.error);
    else if (items.has(item.text)) {
      reader.problems.error(at, path, `"${item.text.slice(0, 60)}" stands twice in the list; remove one`);
    } else items.set(item.text, item.size);
  }
  const sizes = kind === 'cidr' ? [] : [...items.values()];
  return { kind, items: [...items.keys()], sizes };
}

/** A text, or a list of them. */
function textsOf(reader: FieldReader, field: string): readonly Located<string>[] {
  const value = reader.field(field)?.value;
  if (value?.kind === 'scalar') {
    if (value.text !== '') return [{ value: value.text, at: value.at, path: reader.pathOf(field) }];
    reader.error(field, `"${field}" is empty; write what values match, or remove it`);
    return [];
  }
  if (value?.kind === 'list' && value.items.length === 0) {
    reader.error(field, `the list "${field}" is empty; write what values match, or remove it`);
  }
  if (value?.kind === 'map') {
    reader.error(field, `"${field}" must be a text or a list of texts, not a mapping`);
    return [];
  }
  return reader.texts(field, 'texts');
}

type Item = { readonly text: string; readonly size: number } | { readonly error: string };

function readBlock(text: string): Item {
  const block = parseBlock(text);
  return typeof block === 'string' ? { error: block } : { text: block.text, size: 0 };
}

function readPattern(text: string): Item {
  const size = patternSize(text);
  return typeof size === 'string' ? { error: size } : { text, size };
}
