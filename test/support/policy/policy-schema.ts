import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv, { type ValidateFunction } from 'ajv';
import { parse } from 'yaml';
import { repositoryRoot } from '../process/tools.js';

/** Path of the JSON Schema of policy files in the repository. */
export const SCHEMA_PATH = 'deploy/policy.schema.json';

/** A part of the schema, with the fields that tests read. */
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

/** Returns the part that `$ref` names, or the part itself. */
export function resolved(part: SchemaPart): SchemaPart {
  const name = part.$ref?.replace('#/definitions/', '');
  return name === undefined ? part : (schema.definitions?.[name] as SchemaPart);
}

const ajv = new Ajv({ allowUnionTypes: true, strictRequired: false, strictTypes: false, allErrors: true });
let validate: ValidateFunction | undefined;

/** Validates a policy given as YAML, read as editors read it (YAML 1.2, merge keys). Returns the errors, or []. */
export function schemaErrors(text: string): readonly string[] {
  validate ??= ajv.compile(schema);
  if (validate(parse(text, { merge: true, logLevel: 'silent' }))) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
}

/** Returns whether a part of the schema accepts a value. */
export function accepts(part: SchemaPart, value: unknown): boolean {
  return ajv.validate({ ...part, definitions: schema.definitions }, value);
}
