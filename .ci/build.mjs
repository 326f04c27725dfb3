// Compiles src/, test/, deploy/ and .ci/docs/ into build/, and copies the files that the compiled code reads at run
// time (see src/runtime/assets.ts). With --serving, it compiles only src/ and the upstream of docs/start.md, to the
// same files, without type checks, because a server installs too few packages for them.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build as bundle } from 'esbuild';
import { describeFiles } from './descriptors.mjs';
import { SERVING, sourceDigest } from './prepare.mjs';
import { root } from './shell.mjs';

process.chdir(root);
const digest = sourceDigest();
const serving = process.argv[2] === '--serving';
rmSync('build', { recursive: true, force: true });
mkdirSync('build');
const project = join('build', 'tsconfig.json');
if (serving) {
  const compilerOptions = { rootDir: '..', outDir: '.', noCheck: true };
  const sources = ['../src/**/*.ts', '../deploy/demo/echo-upstream.ts'];
  const include = { include: sources, exclude: ['../src/page/**'] };
  writeFileSync(project, JSON.stringify({ extends: '../tsconfig.json', compilerOptions, ...include }));
}
try {
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', ...(serving ? ['-p', project] : [])], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
} catch (error) {
  process.exit(error.status ?? 1); // tsc printed the errors
}

for (const entry of readdirSync('src', { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !entry.name.endsWith('.lua')) continue;
  const source = join(entry.parentPath, entry.name);
  mkdirSync(dirname(join('build', source)), { recursive: true });
  cpSync(source, join('build', source));
}
// The page at / of the debug port. The server assembles the script, the style sheet and page.html into a document. The
// licences of the packages in the bundle require their texts in every copy.
const licences = ['preact', '@preact/signals', 'uplot'].map((name) => {
  const text = readFileSync(join('node_modules', name, 'LICENSE'), 'utf8');
  return `${name}\n\n${text.trim()}\n`;
});
await bundle({
  entryPoints: ['src/page/page.tsx'],
  outfile: 'build/src/page/page.js',
  banner: { js: `/*\n${licences.join('\n')}*/` },
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  logLevel: 'warning',
  tsconfig: 'src/page/tsconfig.json',
});
cpSync('src/page/page.html', 'build/src/page/page.html');
for (const asset of ['package.json', 'proto', 'deploy/policies', 'deploy/init']) {
  cpSync(asset, join('build', asset), { recursive: true });
}
writeFileSync('build/proto/files.json', JSON.stringify(describeFiles()));
rmSync(project, { force: true });
writeFileSync('build/.sources', serving ? SERVING + digest : digest);
