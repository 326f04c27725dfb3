import { parseBlock } from './cidr.js';
import type { FieldReader, Located } from './field-reader.js';
import { patternError } from './regex-matcher.js';
import type { ValueMatcher } from './value-matcher.js';

const FIELDS = [
  ['value_cidr', 'cidr'],
  ['value_regex', 'regex'],
] as const;

/** Reads `value_cidr` or `value_regex` of a node; undefined where it has neither. Of items with errors only the good ones are given. */
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
  const items = new Set<string>();
  for (const { value, at, path } of textsOf(reader, field)) {
    const item = kind === 'cidr' ? readBlock(value) : readPattern(value);
    if ('error' in item) reader.problems.error(at, path, item.error);
    else if (items.has(item.text)) {
      reader.problems.error(at, path, `"${item.text.slice(0, 60)}" stands twice in the list; remove one`);
    } else items.add(item.text);
  }
  return { kind, items: [...items] };
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

function readBlock(text: string): { readonly text: string } | { readonly error: string } {
  const block = parseBlock(text);
  return typeof block === 'string' ? { error: block } : block;
}

function readPattern(text: string): { readonly text: string } | { readonly error: string } {
  const error = patternError(text);
  return error === undefined ? { text } : { error };
}
