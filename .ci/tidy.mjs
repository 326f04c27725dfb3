// Checks that linters do not offer; see the list of rules at the end. `node .ci/tidy.mjs [folder]` checks this project,
// or the project in `folder`.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { scan } from './scan.mjs';
import { counted, filesBelow, root as here } from './shell.mjs';

const MAX_COLUMNS = 120;

const root = process.argv[2] ?? here;

/** Returns all files of the project, also without a Git repository. */
const paths = readdirSync(root, { withFileTypes: true }).flatMap((entry) => {
  if (entry.isFile()) return [entry.name];
  if (!['.ci', 'deploy', 'docs', 'proto', 'src', 'test'].includes(entry.name)) return [];
  return [...filesBelow(entry.name, root)];
});
const isCode = (path) => /^(src|test|deploy|\.ci)\/.*\.(tsx?|mjs|cjs)$/.test(path);
const isSource = (path) => path.startsWith('src/') && /\.tsx?$/.test(path);
const texts = new Map(paths.filter(isCode).map((path) => [path, readFileSync(join(root, path), 'utf8')]));

const scanned = new Map([...texts].map(([path, text]) => [path, scan(text)]));

function* lineWidth() {
  for (const [path, { lines, inTemplate }] of scanned) {
    for (const [index, line] of lines.entries()) {
      if (line.length <= MAX_COLUMNS || inTemplate[index + 1] || inTemplate[index + 2]) continue;
      // An address, a digest or a regular expression cannot be broken.
      if (
        line
          .trimStart()
          .split(/\s+/)
          .some((word) => word.length > MAX_COLUMNS - 30)
      )
        continue;
      yield [
        path,
        index + 1,
        `${line.length} columns`,
        `break the line after at most ${MAX_COLUMNS} columns`,
      ];
    }
  }
}

/** Returns the files that `path` imports, or runs in a thread or process. */
function importsOf(path) {
  const text = texts.get(path);
  const at = (spec) => {
    const named = normalize(join(dirname(path), spec)).replace(/\.js$/, '.ts');
    return texts.has(named) ? named : `${named}x`;
  };
  const imported = [...text.matchAll(/(?:from|import|import\()\s*'(\.[^']+)'/g)].map(([, spec]) => at(spec));
  const started = [...text.matchAll(/'(\.{0,2}\/?[\w/.-]+)\.js'/g)].map(([, spec]) => `${spec}.ts`);
  return [...imported, ...started.flatMap((spec) => [at(spec), spec.replace(/^build\//, '')])];
}

function reachableFrom(entries) {
  const seen = new Set();
  const open = [...entries];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path) || !texts.has(path)) continue;
    seen.add(path);
    open.push(...importsOf(path));
  }
  return seen;
}

function* unused() {
  const told = [
    'package.json',
    ...paths.filter((path) => path.endsWith('.md')),
    ...paths.filter((path) => path.startsWith('.ci/')),
  ]
    .map((path) => (existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : ''))
    .join('\n');
  const all = [...texts.keys()];
  const commands = all.filter((path) => told.includes(`build/${path.replace(/\.tsx?$/, '.js')}`));
  const tests = all.filter((path) => /\.(test|bench)\.ts$/.test(path));
  const isTest = (path) => path.startsWith('test/');
  const used = reachableFrom([
    'src/main.ts',
    ...all.filter((path) => path.startsWith('deploy/')),
    ...commands.filter((path) => !isTest(path)),
  ]);
  const tested = reachableFrom([...tests, ...commands]);
  for (const path of all) {
    if (used.has(path) || /^(\.ci|deploy)\//.test(path)) continue;
    if (isSource(path) && tested.has(path))
      yield [path, 1, 'only tests import this file', 'delete it, or move it to test/support'];
    else if (!tested.has(path)) yield [path, 1, 'no file imports this file', 'delete it'];
  }
}

const EXPORTED =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type)\s+(\w+)/gm;

const EXPORTED_VALUE = /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class)\s+(\w+)/gm;

/** Types may be exported without a user, because they describe the arguments of exported functions. */
function* unusedExports() {
  const filesWith = new Map();
  for (const text of texts.values())
    for (const word of new Set(text.match(/\w+/g))) filesWith.set(word, (filesWith.get(word) ?? 0) + 1);
  for (const [path, text] of texts) {
    for (const { 1: name, index } of text.matchAll(EXPORTED_VALUE)) {
      const line = text.slice(0, index).split('\n').length;
      if (filesWith.get(name) === 1)
        yield [path, line, `no other file uses ${name}`, 'remove `export`, or delete it'];
    }
  }
}

const FILE_NAMED =
  /(?<![\w/.*-])((?:[\w.-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:tsx?|mjs|cjs|md|lua|proto|sh))(?![\w/])/g;

/** Returns the comments of source files, and the text of manual pages, as one text for each file. */
function* remarks() {
  for (const [path, { comments }] of scanned) yield [path, comments];
  for (const path of paths.filter((one) => one.startsWith('docs/internals/'))) {
    yield [path, [{ line: 1, text: readFileSync(join(root, path), 'utf8') }]];
  }
}

function* references() {
  const headings = new Map();
  const headingsOf = (path) => {
    if (!headings.has(path)) {
      const text = existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : '';
      headings.set(
        path,
        new Set([...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) => title.replaceAll('`', ''))),
      );
    }
    return headings.get(path);
  };
  const exported = new Set(
    [...texts.values()].flatMap((text) => [...text.matchAll(EXPORTED)].map(([, name]) => name)),
  );
  for (const [path, comments] of remarks()) {
    const code = texts.get(path) ?? '';
    for (const { line, text } of comments) {
      const lineOf = (index) => line + text.slice(0, index).split('\n').length - 1;
      for (const match of text.matchAll(FILE_NAMED)) {
        const [, named] = match;
        if (/^(google|envoy)\//.test(named)) continue;
        const exists =
          paths.some((one) => one === named || one.endsWith(`/${named}`)) ||
          existsSync(join(root, dirname(path), named));
        if (!exists && !/https?:\/\/\S*$/.test(text.slice(0, match.index)))
          yield [path, lineOf(match.index), `the file ${named} does not exist`, 'correct the path'];
      }
      // A reference to a page by its capitalized name and a section, without a file extension.
      for (const match of text.matchAll(/\b([A-Z]{3,}) sections? \d/g)) {
        yield [
          path,
          lineOf(match.index),
          `the file ${match[1]} does not exist`,
          'refer to a page and a section in docs/',
        ];
      }
      for (const match of text.matchAll(/([\w/-]+\.md), "([^"]+)"/g)) {
        const [, page] = match;
        const title = match[2].replace(/\s*\n\s*(\*|\/\/)\s*/g, ' ').replaceAll('`', '');
        if (!headingsOf(page).has(title))
          yield [
            path,
            lineOf(match.index),
            `${page} has no section "${title}"`,
            'refer to an existing section',
          ];
      }
      for (const match of text.matchAll(/\{@link (\w+)/g)) {
        const [, name] = match;
        const inCode = code.replaceAll(text, '');
        if (!exported.has(name) && !new RegExp(`\\b${name}\\b`).test(inCode))
          yield [path, lineOf(match.index), `${name} does not exist`, 'link to an existing name'];
      }
    }
  }
}

/** Hosts of package registries. Many networks reach packages through another host, which the clients know. */
const REGISTRY_HOST =
  /\b(?:[a-z-]+\.)*(?:npmjs\.(?:org|com)|pypi\.org|pythonhosted\.org|crates\.io|rubygems\.org|proxy\.golang\.org|sum\.golang\.org|yarnpkg\.com|unpkg\.com|jsdelivr\.net|maven\.org|nuget\.org|packagist\.org)\b/gi;
const TEXT_FILE = /\.(?:tsx?|mjs|cjs|js|md|json|ya?ml|toml|lua|proto|sh|tpl|txt|html|css)$|(?:^|\/)[\w-]+$/;

function* registryHosts() {
  for (const path of paths.filter((one) => TEXT_FILE.test(one))) {
    const text = texts.get(path) ?? readFileSync(join(root, path), 'utf8');
    for (const { 0: host, index } of text.matchAll(REGISTRY_HOST)) {
      const line = text.slice(0, index).split('\n').length;
      yield [path, line, `${host} is the host of a package registry`, "link to the project's own page"];
    }
  }
}

const RULES = {
  'line-width': lineWidth,
  unused,
  exports: unusedExports,
  references,
  'registry-hosts': registryHosts,
};

const findings = Object.entries(RULES).flatMap(([rule, find]) =>
  [...find()].map(([path, line, what, remedy]) => `${path}:${line}: ${rule}: ${what}; ${remedy}`),
);
for (const finding of findings) process.stdout.write(`${finding}\n`);
process.stdout.write(findings.length === 0 ? 'tidy\n' : `${counted(findings.length, 'finding')}\n`);
process.exitCode = findings.length === 0 ? 0 : 1;
