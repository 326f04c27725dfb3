import { resolve } from 'node:path';
import { repositoryRoot } from './tools.js';

/**
 * What NODE_OPTIONS holds to have a process run a module first: a path, or one of the tests, such as
 * `test/memory/collect-garbage.js`. In quotes, as paths may hold spaces.
 */
export function preloading(module: string): string {
  return `--require=${JSON.stringify(resolve(repositoryRoot, 'build', module))}`;
}
