import { shownStart } from '../../runtime/shown-address.js';
import type { Position } from './config-problem.js';
import { isNullText } from './yaml-scalar.js';

/** Maximum size of a file in bytes: four times the maximum of a Kubernetes ConfigMap or Secret. */
export const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Maximum number of values that aliases and merge keys of one file may add, because each may double the file. */
export const MAX_ALIAS_VALUES = 100_000;
/** Maximum nesting of mappings and lists. Real policies have less than twenty levels. */
export const MAX_YAML_DEPTH = 200;

/**
 * A YAML document for the policy reader. Every value has its position, and scalars keep their source text, as in
 * envoyproxy/ratelimit: `007`, `yes` and `0x1F` stay as written. Aliases and merge keys are resolved.
 */
export type YamlValue = YamlScalar | YamlMap | YamlList;

export interface YamlScalar {
  readonly kind: 'scalar';
  /** The text without quotes and escapes. */
  readonly text: string;
  /** Whether the scalar is unquoted, and may be read as a number, a boolean or null. */
  readonly plain: boolean;
  readonly at: Position;
}

export interface YamlField {
  readonly key: string;
  readonly keyAt: Position;
  /** Whether the key is unquoted, and may be read as a number, a boolean or null in metadata. */
  readonly keyPlain?: boolean;
  /** 0-based position in the mapping as written. Names the field if its key must not be shown. */
  readonly index: number;
  /** Whether messages may show the key. */
  readonly shown: boolean;
  readonly value: YamlValue;
}

export interface YamlMap {
  readonly kind: 'map';
  readonly fields: ReadonlyMap<string, YamlField>;
  readonly at: Position;
}

export interface YamlList {
  readonly kind: 'list';
  readonly items: readonly YamlValue[];
  readonly at: Position;
}

/** Tells whether the value is an unquoted null, which makes the field count as absent. */
export function isNull(value: YamlValue): boolean {
  return value.kind === 'scalar' && value.plain && isNullText(value.text);
}

/**
 * Tells whether messages may show a key of the mapping at `path`. If not, nothing below the key is shown either, and
 * paths name the key by position.
 */
export type ShowKey = (path: string, key: string) => boolean;

/** Appends a key to a path in the document. Keys that are not plain words are quoted. */
export function joinPath(path: string, key: string): string {
  if (!/^[\w.<-]+$/.test(key)) return `${path}[${JSON.stringify(shownStart(key))}]`;
  return path === '' ? key : `${path}.${key}`;
}
