/*
 * Loaded into weir with NODE_OPTIONS=--require. Collects all garbage on SIGUSR2, and then appends a line to
 * WEIR_GARBAGE_FILE.
 */
import { appendFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

const file = process.env['WEIR_GARBAGE_FILE'];
if (isMainThread && file !== undefined) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  process.on('SIGUSR2', () => {
    collect();
    collect();
    appendFileSync(file, '.');
  });
}
