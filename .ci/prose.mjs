// Checks the spelling, and finds phrases that read as translated: `npm run prose [-- <path>…]`.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, normalize, relative, resolve } from 'node:path';
import { counted, filesBelow, root } from './shell.mjs';

/** Phrases, each with the words of the field for the same. A phrase may be wrapped, and its case does not matter. */
const PHRASES = [
  ['and of whom', 'and for which caller'],
  ['with more in it', 'in an extended form'],
  ['are made out of others', 'derives entries from other entries'],
  ['Before rules are looked for', 'Before matching'],
  ['shows the whole of it', 'shows everything working together'],
  ['takes every value', 'matches any value'],
  ['has this key here', 'uses this key at this level'],
  ['is no unit', 'is not a valid unit'],
  ['would not load', 'would fail to load'],
  ['rules stand at', 'rules exist for'],
  ['good domains', 'valid domains'],
  ['stay as they were', 'keep their previous version'],
  ['an operator asked for a change', 'operator change applied'],
  ['other entries beside', 'additional entries'],
  ['It concerns descriptors', 'Affects 2 limits'],
  ['that were known before', 'showing the last known list'],
  ['may not be the doing of', 'may be failing because of the store, not the caller'],
  ['Whose buckets these are', 'Show affected callers'],
  ['as the files say', 'in sync'],
  ['what is known begins at', 'data since'],
  ['chance may add or take', 'random jitter, as a fraction of the pause'],
  ['for as long as they like', 'no limit'],
  ['could not be asked', 'could not be checked'],
  ['has no part in that', "not a Redis failure: the caller's deadline passed"],
  ['What of a node', 'the value that a sibling already matches'],
  ['may be no policy are held against', 'maximum number of keys compared to recognise a policy file'],
  ['lives to see the difference', 'clamp to the slowest representable rate'],
  ['An end that finds', 'If a request ends and no hold is found for it'],
  ['is a take that', 'is a deduction that'],
  ['bucket has its estimate', 'bucket holds enough tokens for its estimate'],
  ['gets no end of the requests', 'is never told that the requests ended'],
  ['remembers the bucket with the set', 'records the bucket along with the set'],
  ['Hits do not refill', 'nothing is returned to token buckets'],
  ['had taken only its use', 'had been charged only what it used'],
  ['The requests of up to', 'Requests from up to'],
  ['Without an optional tool', 'If an optional tool is not installed'],
  ['gates are undecided', 'gates give no verdict'],
  ['answers again and gets', 'is responding again and receives'],
  ['Ends of holds are lost', 'some holds were not released'],
  ['no owner so far', 'no owner yet'],
  ['requests are a token bucket', 'requests are limited by a token bucket'],
  ['has the next turn', 'whose turn is next'],
];

const CHECKED = ['README.md', 'CHANGELOG.md', '.ci', 'deploy', 'docs', 'proto', 'src', 'test'];
/** These quote the phrases. */
const QUOTING = ['.ci/prose.mjs', 'test/integration/prose.test.ts'];
const PROSE = /\.(?:md|tsx?|mjs|cjs|lua|html|proto|ya?ml|sh)$/;
/** Folders whose spelling is checked. Tests contain mistakes on purpose. */
const SPELLED = CHECKED.filter((path) => path !== 'test' && path !== '.ci');

/** A line break within a phrase may be followed by the marks of a comment or a quote. */
const BREAK = String.raw`\s+(?:(?:\/\/|\*|--|#|>)\s+)?`;
const patterns = PHRASES.map(([written, better]) => ({
  better,
  pattern: new RegExp(`(?<!\\w)${written.split(' ').join(BREAK)}(?!\\w)`, 'gi'),
}));

/** Hides code blocks, and all but the newest section of the changelog. Keeps the line numbers. */
function proseOf(path) {
  const text = readFileSync(join(root, path), 'utf8');
  if (!path.endsWith('.md')) return text;
  const older = path === 'CHANGELOG.md' ? [...text.matchAll(/^## /gm)][1]?.index : undefined;
  return text
    .slice(0, older)
    .replace(/^ *```.*?^ *```/gms, (block) => block.replace(/[^\n]/g, ''))
    .replace(/`[^`\n]+`/g, (code) => 'x'.repeat(code.length));
}

function findingsIn(path) {
  const text = proseOf(path);
  return patterns.flatMap(({ pattern, better }) =>
    [...text.matchAll(pattern)].map(({ 0: words, index }) => {
      const line = text.slice(0, index).split('\n').length;
      return `${path}:${line}: "${words.replace(/\s+/g, ' ')}": write "${better}"`;
    }),
  );
}

function filesAt(path) {
  if (!existsSync(join(root, path))) throw new Error(`${path} does not exist`);
  return statSync(join(root, path)).isFile() ? [path] : [...filesBelow(path)];
}

/** Returns the findings of typos, or undefined if it is not installed. .ci/typos.toml lists what is no mistake. */
function misspelled(paths) {
  const program = process.env.WEIR_TEST_TYPOS ?? join(root, '.tools/bin/typos');
  if (!existsSync(program)) return undefined;
  const args = ['--config', join(root, '.ci/typos.toml'), '--format', 'brief', ...paths];
  const { error, status, stdout, stderr } = spawnSync(program, args, { cwd: root, encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0 && stdout === '') throw new Error(`typos failed: ${stderr}`);
  return stdout.split('\n').filter((line) => line !== '');
}

try {
  const asked = process.argv.slice(2).map((path) => normalize(relative(root, resolve(path))));
  const files = [...new Set((asked.length > 0 ? asked : CHECKED).flatMap(filesAt))];
  const spelling = misspelled(asked.length > 0 ? asked : SPELLED);
  const phrases = files.filter((path) => PROSE.test(path) && !QUOTING.includes(path)).flatMap(findingsIn);
  const findings = [...phrases, ...(spelling ?? [])];
  for (const finding of findings) process.stdout.write(`${finding}\n`);
  if (spelling === undefined)
    process.stdout.write('prose: typos is not installed; the spelling was not checked\n');
  process.stdout.write(
    findings.length === 0 ? 'prose: no findings\n' : `prose: ${counted(findings.length, 'finding')}\n`,
  );
  process.exitCode = findings.length === 0 ? 0 : 1;
} catch (error) {
  process.stderr.write(`prose: ${error.message}\n`);
  process.exitCode = 2;
}
