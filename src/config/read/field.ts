import type { ScalarKind } from './scalar-kinds.js';

/*
 * The vocabulary in which policy-fields.ts describes the keys of the policy format.
 */

/** The mappings of a policy, with their names in messages and the manual. */
export type MappingName =
  | 'file'
  | 'descriptor'
  | 'rate_limit'
  | 'rate_limits_item'
  | 'token_bucket'
  | 'concurrency'
  | 'hold'
  | 'priorities'
  | 'lease'
  | 'replaced_rule'
  | 'denied_response'
  | 'on_over'
  | 'phase_schedule'
  | 'local_share'
  | 'plans'
  | 'plan_value'
  | 'derive_item'
  | 'derive_rule';

/** The kind of a key's value. */
export type FieldKind =
  | ScalarKind
  /** A text as envoyproxy/ratelimit reads it, which refuses numbers that YAML would change. */
  | NameKind
  /** A time of RFC 3339, in microseconds since the epoch. */
  | { readonly kind: 'time' }
  | TextsKind
  /** A list of words. `items` names them in messages. */
  | { readonly kind: 'words'; readonly words: readonly string[]; readonly items: string }
  | { readonly kind: 'mapping'; readonly of: MappingName }
  | ListKind
  /** A word, or a mapping in its place. `other` describes the mapping in messages. */
  | WordOrMappingKind
  /** Any mapping, as a JSON object. */
  | { readonly kind: 'metadata' }
  /** Tenants by the SHA-256 of their API keys. */
  | { readonly kind: 'key_table' }
  /** Headers, each as a mapping of its name to its value. */
  | { readonly kind: 'headers' }
  /** Plans by name, each with its values by name. */
  | { readonly kind: 'plan_values' }
  /** Classes by name, each with a whole number or a percentage. */
  | { readonly kind: 'kept_hits' }
  /** A single value of any kind. */
  | { readonly kind: 'any' };

export interface NameKind {
  readonly kind: 'name';
  /** Whether the name must not consist of digits, which are positions. */
  readonly noDigits?: true;
}

/** A list of texts. */
export interface TextsKind {
  readonly kind: 'texts';
  /** What the texts are, in messages. */
  readonly items: string;
  /** Whether a single text counts as a list with this text. */
  readonly single?: true;
  /** See {@link Field.schemaPattern}. */
  readonly schemaPattern?: string;
}

/** A list of mappings. */
export interface ListKind {
  readonly kind: 'list';
  readonly of: MappingName;
  /** What the mappings are, in messages. */
  readonly items: string;
  /** The key that items begin with, in messages. */
  readonly first?: string;
  /** Minimum and maximum number of items. */
  readonly min?: number;
  readonly max?: number;
}

export interface WordOrMappingKind<Word extends string = string> {
  readonly kind: 'word_or_mapping';
  readonly words: readonly Word[];
  readonly of: MappingName;
  readonly other: string;
  readonly meaning?: string;
}

/** A key: the kind of its value, and what people and other programs need to know about it. */
export type Field = FieldKind & {
  /** What the key means: the sentences in the manual and in editors. */
  readonly about: string;
  /** Examples for editors. The manual shows the first one. */
  readonly examples?: readonly unknown[];
  /** The value of a key that is absent, as written. */
  readonly default?: unknown;
  /** Whether a key that is absent has the value of the level above, and only the last level has the default. */
  readonly inherits?: true;
  /** The end of the message if the key is missing: what to write. A key without it is optional. */
  readonly required?: string;
  /** Whether a required text may be empty. */
  readonly mayBeEmpty?: true;
  /**
   * What a key without a value causes, except that it counts as absent. `warning` and `error` are messages of weir. The
   * schema refuses all of these keys; it accepts others, as in files for envoyproxy/ratelimit.
   */
  readonly empty?: 'unusual' | 'warning' | 'error';
  /** The end of the message about a list, or another shape, in place of the value: what to write instead. */
  readonly instead?: string;
  /** Whether the value may come from the plan of a customer. */
  readonly planned?: true;
  /** Whether envoyproxy/ratelimit knows the key, and therefore ignores it in other mappings. */
  readonly reference?: true;
  /** The form in an xDS resource if it does not follow from the kind; see xds/rate-limit-config.ts. */
  readonly xds?: XdsException;
  /**
   * Pattern of the text, which only the schema uses. Each key with a pattern has a function of the reader that checks
   * the text, and explains more, such as which name is similar.
   */
  readonly schemaPattern?: string;
  /** Maximum length of a text in characters (Unicode code points, as in JSON Schema). */
  readonly maxLength?: number;
};

/**
 * - `kept`: a field that is never absent; 0 or an empty text is a value
 * - `optional`: a field with presence
 * - `wrapped`: a google.protobuf.UInt32Value
 * - `preset`: a message with the word in the field `preset` and the mapping in the field `custom`
 * - `file_only`: no field, because only files have the key
 * - `mappingIn`: the field of the mapping, next to that of the word
 */
export type XdsException =
  | 'kept'
  | 'optional'
  | 'wrapped'
  | 'preset'
  | 'file_only'
  | { readonly mappingIn: string };

/** The keys of one mapping, in the order in which messages list them. */
export type Fields = Readonly<Record<string, Field>>;

/**
 * What a key excludes or needs in its mapping. The reader reports it, except with `bySchema`: then a function of the
 * reader knows more, such as defaults, and only the schema uses the constraint.
 */
export interface Constraint {
  /** The key that the mapping must have. */
  readonly key: string;
  /** The value that the key must have. Default: any. */
  readonly is?: string | boolean;
  /** A key that the mapping must not have. */
  readonly unless?: string;
  /** Keys that cannot be combined with it. A text says why, or how the message ends. */
  readonly excludes?: readonly string[] | Readonly<Record<string, string>>;
  /** Keys that the mapping must have, with their values. */
  readonly needs?: Readonly<Record<string, boolean>>;
  /** Minimum values of other keys. */
  readonly minimum?: Readonly<Record<string, number>>;
  readonly bySchema?: true;
}
