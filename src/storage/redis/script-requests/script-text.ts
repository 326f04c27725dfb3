import { readAsset } from '../../../assets.js';

/** Returns a script without comments and indentation, because each call sends the whole text. */
export function scriptText(paths: readonly string[]): string {
  return paths
    .map(readAsset)
    .join('')
    .replaceAll(/^[ \t]*(?:--.*)?\n|^[ \t]+/gm, '');
}
