import type { Position } from './config-problem.js';

/**
 * A YAML document as the policy reader wants it: every value knows where it stands, scalars keep their source text
 * (`007`, `yes` and `0x1F` stay what they look like, as in envoyproxy/ratelimit), aliases and merge keys are resolved.
 */
export type YamlValue = YamlScalar | YamlMap | YamlList;

export interface YamlScalar {
  readonly kind: 'scalar';
  /** The text as written, without quotes and escapes. */
  readonly text: string;
  /** Unquoted: may be read as a number, a boolean or nothing at all. */
  readonly plain: boolean;
  /** `!!int`, `!!float`, `!!bool` or `!!null`, where it is written. */
  readonly tag?: string;
  readonly at: Position;
}

export interface YamlField {
  readonly key: string;
  readonly keyAt: Position;
  /** The key is unquoted: may stand for a number, a boolean or null where that counts, as in metadata. */
  readonly keyPlain?: boolean;
  /** 0-based place in the mapping as written: names the field where its key may not be shown. */
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

/** Plain scalars that stand for "nothing here" (YAML 1.1, https://yaml.org/type/null.html). */
const NULL_TEXTS: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL']);

/** Whether the value is an unquoted null: the field counts as absent. */
export function isNull(value: YamlValue): boolean {
  return value.kind === 'scalar' && value.plain && NULL_TEXTS.has(value.text);
}

/**
 * Whether messages may show a key of the mapping at `path`. Where they may not, nothing below the key is shown either,
 * and paths name it by its place.
 */
export type ShowKey = (path: string, key: string) => boolean;

/** Appends a key to a path in the document; keys that are no plain words are quoted. */
export function joinPath(path: string, key: string): string {
  if (!/^[\w.<-]+$/.test(key)) return `${path}[${JSON.stringify(key.slice(0, 60))}]`;
  return path === '' ? key : `${path}.${key}`;
}
