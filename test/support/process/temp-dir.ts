import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { closeLater } from './close-later.js';

/** A temporary directory. It is removed after the test, or when its creator removes it. */
export class TempDir {
  readonly path: string;

  /** `where` is the parent directory; default: the system's directory for temporary files. */
  constructor(where: string = tmpdir()) {
    this.path = mkdtempSync(join(where, 'weir-test-'));
    closeLater(this, () => this.remove());
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
