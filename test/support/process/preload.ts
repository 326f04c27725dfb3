import { resolve } from 'node:path';
import { repositoryRoot } from './tools.js';

/**
 * Returns the value of NODE_OPTIONS that preloads a module: a path, or a module of the tests such as
 * `test/support/weir/collect-garbage.js`. The path is quoted because it may contain spaces.
 */
export function preloading(module: string): string {
  return `--require=${JSON.stringify(resolve(repositoryRoot, 'build', module))}`;
}
