// `npm run release -- --gate`: what a release must pass in addition to .ci/run. Each check prints a line.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifest } from './dist.mjs';
import { build, install } from './prepare.mjs';
import { notesOf, notesProblem, unreleasedNotes } from './release-texts.mjs';
import { Impossible, must, root, run, say } from './shell.mjs';
import { stopOnSignals } from './stop.mjs';
import { runTests } from './test.mjs';

/** The last commit of the first edition. It is the base until there is a release. */
const FIRST_EDITION = '0c7654cc';
/** Maximum CPU time of a decision, relative to the base. */
const MAX_RATIO = 1.05;
/** A line of bench:compare: name, two costs in µs, ratio. */
const RATIO = /^(\S.*?) +[\d.]+ +[\d.]+ µs +([\d.]+) /gm;

/** Returns the newest tag of a release, or undefined. */
async function lastRelease() {
  const tags = await must('git tag', 'git', [
    'tag',
    '--list',
    'v*',
    '--sort=-version:refname',
    '--merged',
    'HEAD^',
  ]);
  return tags.split('\n').find((tag) => /^v\d+\.\d+\.\d+$/.test(tag));
}

async function tests(...args) {
  const { passed, failed, notes } = await runTests(args);
  const skipped = notes.filter((note) => note.startsWith('skipped: '));
  if (failed > 0 || skipped.length > 0)
    throw new Impossible(`${failed} of ${passed + failed} tests failed\n${skipped.join('\n')}`.trim());
  return `${passed} tests`;
}

/** Returns the lines of bench:compare whose ratio is above {@link MAX_RATIO}, or the reason why there are none. */
export function slowerCases(output) {
  const ratios = [...output.matchAll(RATIO)].map(([, name, ratio]) => ({ name, ratio: Number(ratio) }));
  const skipped = [...output.matchAll(/^(.*): skipped, because .*/gm)].map(([line]) => line);
  if (ratios.length === 0) return ['bench:compare printed no ratios', ...skipped];
  const slower = ratios.filter(({ ratio }) => ratio > MAX_RATIO);
  return [...slower.map(({ name, ratio }) => `${name}: ${ratio}`), ...skipped];
}

async function benchCompare(base) {
  const { code, output } = await run('npm', ['run', '--silent', 'bench:compare', '--', base, 'HEAD', 'load']);
  const slower = code === 0 ? slowerCases(output) : [output.trim()];
  if (slower.length > 0)
    throw new Impossible(`compared with ${base}, above ${MAX_RATIO} times:\n  ${slower.join('\n  ')}`);
  return `compared with ${base}`;
}

function changelog(version) {
  const text = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const problem = notesProblem(notesOf(text, version) ?? unreleasedNotes(text), version);
  if (problem !== undefined) throw new Impossible(problem);
}

/** Checks whether `version` may be released. Rejects with {@link Impossible} if any check fails, after all checks. */
export async function gate(version = manifest().version) {
  stopOnSignals();
  await install();
  await build();
  const base = (await lastRelease()) ?? FIRST_EDITION;
  const checks = [
    ['the changelog has the sections of the version', () => changelog(version)],
    [
      'generated files are current, with the table of features',
      () => must('npm run docs', 'npm', ['run', '--silent', 'docs', '--', '--check']).then(() => undefined),
    ],
    ['the drop-in cases', () => tests('--selectProjects', 'integration', 'integration/reference')],
    ['h2spec', () => tests('--selectProjects', 'conformance', 'conformance/h2spec')],
    ['two versions on one Redis', () => tests('--selectProjects', 'integration', 'two-editions')],
    ['chaos', () => tests('--selectProjects', 'chaos')],
    [`no case of the benchmark is slower than ${MAX_RATIO} times the base`, () => benchCompare(base)],
  ];
  let failed = 0;
  for (const [name, check] of checks) {
    const started = performance.now();
    const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
    try {
      const result = await check();
      say(`ok: ${name} (${result === undefined ? '' : `${result}, `}${seconds()})`);
    } catch (error) {
      failed += 1;
      say(`FAILED: ${name} (${seconds()}): ${error instanceof Impossible ? error.message : error.stack}`);
    }
  }
  if (failed > 0)
    throw new Impossible(`${version} may not be released: ${failed} of ${checks.length} checks failed`);
  process.stdout.write(`${version} may be released\n`);
}
