// Compiles src/, test/, deploy/ and .ci/docs/ into build/, and copies the files that the compiled code reads at run
// time (see src/assets.ts). With --serving, it compiles only src/ and the upstream of docs/start.md, to the same files,
// without type checks, because a server installs too few packages for them.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
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
// The page at / of the debug port. The server assembles these parts into a document.
await bundle({
  entryPoints: ['src/page/page.ts'],
  outfile: 'build/src/page/page.js',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  logLevel: 'warning',
});
for (const part of ['src/page/page.html', 'src/page/page.css']) cpSync(part, join('build', part));
for (const asset of ['package.json', 'proto', 'deploy/policies', 'deploy/init']) {
  cpSync(asset, join('build', asset), { recursive: true });
}
writeFileSync('build/proto/files.json', JSON.stringify(describeFiles()));
rmSync(project, { force: true });
writeFileSync('build/.sources', serving ? SERVING + digest : digest);
