import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv, { type ValidateFunction } from 'ajv';
import { parse } from 'yaml';
import { repositoryRoot } from '../process/tools.js';

/** Where the JSON Schema of policy files lies, in the repository. */
export const SCHEMA_PATH = 'deploy/policy.schema.json';

/** A part of the schema, as far as tests look into it. */
export interface SchemaPart {
  readonly $ref?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, SchemaPart>>;
  readonly items?: SchemaPart;
  readonly anyOf?: readonly SchemaPart[];
  readonly additionalProperties?: boolean | SchemaPart;
  readonly definitions?: Readonly<Record<string, SchemaPart>>;
}

export const schema = JSON.parse(readFileSync(join(repositoryRoot, SCHEMA_PATH), 'utf8')) as SchemaPart;

/** What `$ref` names, else the part itself. */
export function resolved(part: SchemaPart): SchemaPart {
  const name = part.$ref?.replace('#/definitions/', '');
  return name === undefined ? part : (schema.definitions?.[name] as SchemaPart);
}

const ajv = new Ajv({ allowUnionTypes: true, strictRequired: false, strictTypes: false, allErrors: true });
let validate: ValidateFunction | undefined;

/**
 * What the schema says against a policy given as YAML, read as editors read it (YAML 1.2, merge keys); [] when nothing.
 */
export function schemaErrors(text: string): readonly string[] {
  validate ??= ajv.compile(schema);
  if (validate(parse(text, { merge: true, logLevel: 'silent' }))) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
}

/** What `part` of the schema says against a value. */
export function accepts(part: SchemaPart, value: unknown): boolean {
  return ajv.validate({ ...part, definitions: schema.definitions }, value);
}
