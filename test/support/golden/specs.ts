/* Digests of the specifications that the reader creates, so that a change of the reader shows which ones it changes. */

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import fc from 'fast-check';
import { openFile } from '../../../src/config/read/policy-source.js';
import { readDomain } from '../../../src/config/read/read-domain.js';
import type { ReferenceCase } from '../../integration/reference/case.js';
import * as errors from '../../integration/reference/cases/errors.js';
import * as files from '../../integration/reference/cases/files.js';
import * as headers from '../../integration/reference/cases/headers.js';
import * as hits from '../../integration/reference/cases/hits.js';
import * as http from '../../integration/reference/cases/http.js';
import { INVALID_FILES } from '../../integration/reference/cases/invalid-files.js';
import * as matching from '../../integration/reference/cases/matching.js';
import * as metadata from '../../integration/reference/cases/metadata.js';
import * as nearLimit from '../../integration/reference/cases/near-limit.js';
import * as overrides from '../../integration/reference/cases/overrides.js';
import * as quota from '../../integration/reference/cases/quota.js';
import * as replaces from '../../integration/reference/cases/replaces.js';
import * as shadow from '../../integration/reference/cases/shadow.js';
import * as statNames from '../../integration/reference/cases/stat-names.js';
import * as stores from '../../integration/reference/cases/stores.js';
import * as units from '../../integration/reference/cases/units.js';
import * as wildcards from '../../integration/reference/cases/wildcards.js';
import { manualPages, pageText } from '../docs/pages.js';
import { arbitraryPolicy } from '../policy/arbitrary-policies.js';
import { repositoryRoot } from '../process/tools.js';

const REFERENCE = {
  ...{ errors, files, headers, hits, http, matching, metadata, nearLimit, overrides, quota, replaces },
  ...{ shadow, statNames, stores, units, wildcards },
};

/** Number of random policies, and of those that share a line. */
const RANDOM = 200;
const RANDOM_IN_A_LINE = 25;

/** A policy with a name that is unique and stays the same. */
interface NamedPolicy {
  readonly name: string;
  readonly text: string;
  /** Folder of the files that the policy names, relative to the repository. */
  readonly folder: string;
}

/**
 * Returns a line for each policy of deploy/, of the manual, and for each invalid one: the digest of its specification,
 * or the places of its errors. The cases of a subject of the reference share a line, and so do random policies.
 */
export function specLines(): string {
  const alone = [...shippedPolicies(), ...manualPolicies(), ...invalidPolicies()];
  const groups = [...referencePolicies(), ...randomPolicies()];
  const lines = [
    ...alone.map((policy) => `${policy.name}: ${resultOf(policy)}`),
    ...groups.map(
      ([name, texts]) => `${name}: ${digestOf(texts.map((text) => resultOf(inTest(name, text))))}`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}

/** YAML files with a domain. */
function shippedPolicies(): readonly NamedPolicy[] {
  const folders = ['deploy', 'test/contract/golden/policies'];
  return folders.flatMap((folder) =>
    readdirSync(join(repositoryRoot, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
      .map((entry) => relative(repositoryRoot, join(entry.parentPath, entry.name)))
      .sort()
      .map((name) => ({ name, text: pageText(name), folder: dirname(name) }))
      .filter(({ text }) => /^domain:/m.test(text)),
  );
}

function manualPolicies(): readonly NamedPolicy[] {
  return manualPages().flatMap((page) =>
    [...pageText(page).matchAll(/^```yaml\n(.*?)^```/gms)]
      .map(([, text = '']) => text)
      .filter((text) => /^domain:/m.test(text))
      // Examples keep their names if others are added.
      .map((text, i) => ({
        name: `${page} ${/^# example: (\S+)/.exec(text)?.[1] ?? i + 1}`,
        text,
        folder: dirname(page),
      })),
  );
}

/** Texts of several policies, with their name. */
type Group = readonly [name: string, texts: readonly string[]];

function referencePolicies(): readonly Group[] {
  return Object.entries(REFERENCE).map(([subject, lists]) => {
    const cases = (Object.values(lists) as readonly unknown[]).filter((list) => Array.isArray(list)).flat();
    return [
      `reference, ${subject}`,
      (cases as readonly ReferenceCase[]).flatMap(({ rules, files = {} }) => [
        ...(rules === undefined ? [] : [`domain: d\ndescriptors:\n${rules}`]),
        ...Object.values(files),
      ]),
    ];
  });
}

function invalidPolicies(): readonly NamedPolicy[] {
  return INVALID_FILES.map(({ name, text }) => inTest(`invalid: ${name}`, text));
}

function randomPolicies(): readonly Group[] {
  const texts = fc.sample(arbitraryPolicy, { seed: 52, numRuns: RANDOM }).map((one) => JSON.stringify(one));
  return Array.from({ length: RANDOM / RANDOM_IN_A_LINE }, (_, i) => [
    `random from ${i * RANDOM_IN_A_LINE + 1}`,
    texts.slice(i * RANDOM_IN_A_LINE, (i + 1) * RANDOM_IN_A_LINE),
  ]);
}

function inTest(name: string, text: string): NamedPolicy {
  return { name, text: text.replaceAll('<domain>', 'd'), folder: 'test' };
}

function resultOf({ text, folder }: NamedPolicy): string {
  const { source, problems } = openFile('policy.yaml', Buffer.from(text));
  const files = {
    read: (file: string) => readFileSync(join(repositoryRoot, folder, file)),
    digestOf: () => '',
  };
  const read = source && readDomain([source], files);
  if (read?.spec !== undefined) return digestOf(plain(read.spec));
  const all = [problems, ...(read?.tableFiles ?? [])].flatMap((list) => list.errors);
  return `errors at ${all.map(({ line, column, path }) => `${line}:${column} ${path}`).join(', ')}`;
}

/** Returns a value that JSON can express, with sorted members. The time at which a table was read is left out. */
function plain(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  if (ArrayBuffer.isView(value)) return Array.from(value as Uint32Array, plain);
  if (value instanceof Map) return [...value].map(plain);
  const members = Object.entries(value).filter(([name]) => name !== 'readAtMillis');
  return Object.fromEntries(
    members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => [name, plain(one)]),
  );
}
