// Compiles src/, test/ and deploy/ into build/ and copies what the compiled code reads at run time (see src/assets.ts).
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build as bundle } from 'esbuild';
import { describeFiles } from './descriptors.mjs';
import { sourceDigest } from './prepare.mjs';
import { root } from './shell.mjs';

process.chdir(root);
const digest = sourceDigest();
rmSync('build', { recursive: true, force: true });
try {
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
} catch (error) {
  process.exit(error.status ?? 1); // tsc has said what is wrong
}

for (const entry of readdirSync('src', { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !entry.name.endsWith('.lua')) continue;
  const source = join(entry.parentPath, entry.name);
  mkdirSync(dirname(join('build', source)), { recursive: true });
  cpSync(source, join('build', source));
}
// The page at / of the debug port: the server puts its parts into one document.
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
writeFileSync('build/.sources', digest);
