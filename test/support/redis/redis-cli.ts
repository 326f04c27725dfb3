import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { toolPath } from '../process/tools.js';

/** Returns a shell script that runs the redis-cli next to redis-server, with some first arguments. */
export function redisCliScript(...first: readonly string[]): string {
  const server = toolPath('redis-server');
  const args = [...first, '"$@"'].join(' ');
  const launcher = readFileSync(server);
  if (launcher.toString('latin1', 0, 2) !== '#!') {
    return `#!/bin/sh\nexec '${join(dirname(server), 'redis-cli')}' ${args}\n`;
  }
  return launcher.toString().replaceAll("/redis-server'", "/redis-cli'").replace('"$@"', args);
}
