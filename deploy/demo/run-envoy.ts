/*
 * `npm run envoy -- <arguments>`: the Envoy that the tests use, fetched once into .tools/, with these arguments. For
 * trying weir out; in production take the Envoy that you run already.
 */
import { spawn } from 'node:child_process';
import { toolPath } from '../../test/support/process/tools.js';

const envoy = spawn(toolPath('envoy'), process.argv.slice(2), { stdio: 'inherit' });
// Ctrl-C reaches Envoy by itself, and this process waits for its end.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => envoy.kill('SIGTERM'));
envoy.on('error', (error) => {
  console.error(`Envoy cannot be started: ${error.message}`);
  process.exitCode = 1;
});
envoy.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 143);
});
