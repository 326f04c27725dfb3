import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A temporary directory for one test; call `remove` afterwards. */
export class TempDir {
  readonly path: string;

  /** `where` is the parent directory; default: the system's directory for temporary files. */
  constructor(where: string = tmpdir()) {
    this.path = mkdtempSync(join(where, 'weir-test-'));
  }

  /** Writes a file, creates its parent directories, and returns its path. */
  write(name: string, content: string): string {
    const path = this.join(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  join(...names: readonly string[]): string {
    return join(this.path, ...names);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
