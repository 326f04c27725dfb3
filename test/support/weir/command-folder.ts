import { afterAll } from '@jest/globals';
import { TempDir } from '../process/temp-dir.js';
import { CommandHost } from './commands.js';

/** Creates a folder, and a process for commands in it. Both last until the end of the test file. */
export function commandFolder(): { readonly folder: TempDir; readonly host: CommandHost } {
  const folder = new TempDir();
  const host = new CommandHost();
  afterAll(async () => {
    await host.stop();
    folder.remove();
  });
  return { folder, host };
}
