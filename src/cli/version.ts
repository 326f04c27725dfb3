import { readAsset } from '../assets.js';

/** The version in package.json. */
export function version(): string {
  return (JSON.parse(readAsset('package.json')) as { version: string }).version;
}
