/*
 * `npm run envoy -- <arguments>`: runs the Envoy of the tests, which is downloaded to .tools/ the first time. It is for
 * trials only. In production, use your own Envoy.
 */
import { spawn } from 'node:child_process';
import { toolPath } from '../../test/support/process/tools.js';

const envoy = spawn(toolPath('envoy'), process.argv.slice(2), { stdio: 'inherit' });
// The terminal sends Ctrl-C to Envoy, too. This process waits for the exit of Envoy.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => envoy.kill('SIGTERM'));
envoy.on('error', (error) => {
  console.error(`Envoy cannot be started: ${error.message}`);
  process.exitCode = 1;
});
envoy.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 143);
});
