import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { UNPRINTABLE } from '../../../../src/printable.js';
import type { GroupsReport, Offender, ReplayReport } from '../../../../src/replay/report/report.js';
import { jsonReport, writeReport } from '../../../../src/replay/report/report-files.js';
import { TempDir } from '../../../support/process/temp-dir.js';
import { repositoryRoot } from '../../../support/process/tools.js';
import { interval, sampleReport, total } from '../../../support/replay/sample-report.js';

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

const schema = JSON.parse(
  readFileSync(join(repositoryRoot, 'deploy/replay-report.schema.json'), 'utf8'),
) as Schema;
const validate = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(schema);

let folder: TempDir;
beforeEach(() => {
  folder = new TempDir();
});
afterEach(() => folder.remove());

function errorsOf(report: ReplayReport): readonly unknown[] {
  validate(JSON.parse(jsonReport(report)));
  return validate.errors ?? [];
}

/** Returns the paths of all members of an object, or of a schema. */
function membersOf(value: unknown, path = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((item) => membersOf(item, path));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    `${path}.${name}`,
    ...membersOf(member, `${path}.${name}`),
  ]);
}

function membersOfSchema({ $ref, properties = {}, items }: Schema, path = ''): readonly string[] {
  if ($ref === '#/definitions/interval') return [`${path}.least`, `${path}.most`];
  if ($ref === '#/definitions/group') return [`${path}.key`, `${path}.source`, `${path}.value`];
  const below = Object.entries(properties).flatMap(([name, part]) => [
    `${path}.${name}`,
    ...membersOfSchema(part, `${path}.${name}`),
  ]);
  return [...below, ...(items === undefined ? [] : membersOfSchema(items, path))];
}

/** A report with all members. */
function fullReport(): ReplayReport {
  const report = sampleReport({ partial: 'the replay was interrupted' });
  const source = 'x-tenant';
  const group = { key: 'tenant', source, value: '*' };
  const { requests, newlyDenied } = report.total;
  const offenders: readonly Offender[] = [
    { group, requests, newlyDenied },
    { rule: { domain: 'shop', rule: 'tenant' }, requests, newlyDenied },
  ];
  const values = { count: 240, exceeding: interval(12) };
  const result = {
    verdict: 'undecided',
    reason: 'of a sample',
    remark: 'others are not counted',
    requests,
    newlyDenied,
    values,
    offenders,
  } as const;
  const gates = [{ name: 'max-newly-denied', group, bound: '0', ...result } as const];
  const candidates = [
    { domain: 'shop', rule: 'tenant', requests: 9, denied: 3, newlyDenied: 2, newlyAllowed: 1 },
  ];
  const groups = { ...(report.groups as GroupsReport), source };
  return { ...report, log: { ...report.log, sample: 0.1 }, groups, gates, candidates };
}

test('the schema accepts reports, and describes exactly their members', () => {
  expect(errorsOf(fullReport())).toEqual([]);
  expect([...new Set(membersOf(fullReport()))].sort()).toEqual([...membersOfSchema(schema)].sort());
});

test('the schema accepts a report without optional members', () => {
  const { groups: _, ...report } = sampleReport({ rules: [], notes: [], total: total(0) });
  expect(errorsOf(report)).toEqual([]);
});

test('hostile names keep their value as JSON, and cannot control a terminal', () => {
  const name = '\u202e\u001b[31m</script>\u2028';
  const text = jsonReport(sampleReport({ after: { name } }));
  expect((JSON.parse(text) as ReplayReport).after.name).toBe(name);
  expect(text.split('\n').some((line) => UNPRINTABLE.test(line))).toBe(false);
});

test('a report replaces an older one, and no other file remains', () => {
  const path = folder.write('report.json', 'old');
  expect(writeReport(path, 'new', [])).toBeUndefined();
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(writeReport(join(folder.path, 'new.json'), 'new', [])).toBeUndefined();
  expect(readdirSync(folder.path).sort()).toEqual(['new.json', 'report.json']);
});

test('a report replaces the target of a link', () => {
  const path = folder.write('report.json', 'old');
  const link = join(folder.path, 'latest.json');
  symlinkSync(path, link);
  expect(writeReport(link, 'new', [])).toBeUndefined();
  expect(readFileSync(path, 'utf8')).toBe('new');
});

test('a report never replaces an input file, a folder or a device', () => {
  const log = folder.write('access.log', 'lines');
  expect(writeReport(log, 'new', [log])).toMatch(/input file/);
  expect(readFileSync(log, 'utf8')).toBe('lines');
  mkdirSync(join(folder.path, 'folder'));
  for (const path of [join(folder.path, 'folder'), '/dev/null']) {
    expect(writeReport(path, 'new', [])).toBe(
      `"${path}" is not a regular file; choose another path for the report`,
    );
  }
});

test('a full disk leaves the older report in place', () => {
  const path = folder.write('report.json', 'old');
  const program = join(folder.path, 'program.cjs');
  const module = join(repositoryRoot, 'build/src/replay/report/report-files.js');
  writeFileSync(
    program,
    `process.on('SIGXFSZ', () => {});
const { writeReport } = require(${JSON.stringify(module)});
process.stdout.write(String(writeReport(${JSON.stringify(path)}, 'x'.repeat(1e6), [])));`,
  );
  // A limit on the size of files has the same effect on a write as a full disk: only a part is written.
  const output = execFileSync('bash', ['-c', `ulimit -f 8; "${process.execPath}" "${program}" | cat`], {
    encoding: 'utf8',
  });
  const message = 'report.json" was not written: the files cannot be written: EFBIG';
  expect(output).toMatch(new RegExp(`^the report "/.*/${message}`));
  expect(readFileSync(path, 'utf8')).toBe('old');
  expect(readdirSync(folder.path).sort()).toEqual(['program.cjs', 'report.json']);
});
