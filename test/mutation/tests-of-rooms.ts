import { dirname, join, normalize } from 'node:path';
import { roomOf } from './sample.js';

const TEST = /^test\/(unit|property|contract)\/.*\.test\.ts$/;

/** Finds the tests of a room that can detect a change of a source file. */
export class TestsOfRooms {
  private readonly imports: ReadonlyMap<string, readonly string[]>;
  private readonly tests: readonly string[];

  /** `texts` are the contents of all files of src/ and test/, by path. */
  constructor(texts: ReadonlyMap<string, string>) {
    // A string such as 'worker.js' counts as an import, because it may name the file of a thread.
    const importsOf = (path: string, text: string) =>
      [...text.replace(/^(?:import|export) type [^;]*;/gm, '').matchAll(/'([\w/.-]+)\.js'/g)]
        .map(([, spec]) => normalize(join(dirname(path), `${spec}.ts`)))
        .filter((one) => texts.has(one));
    this.imports = new Map([...texts].map(([path, text]) => [path, importsOf(path, text)]));
    this.tests = [...texts.keys()].filter((path) => TEST.test(path));
  }

  /** Returns `path` and its direct and indirect imports. Only the imports of files that `followed` accepts count. */
  private importsFrom(path: string, followed: (path: string) => boolean): ReadonlySet<string> {
    const found = new Set<string>([path]);
    for (const file of found) {
      if (followed(file)) for (const imported of this.imports.get(file) ?? []) found.add(imported);
    }
    return found;
  }

  /**
   * Returns whether a test belongs to a room. The folder of a test has the name of its room. A test outside these
   * folders belongs to each room that the test, or a helper in its tier, imports from.
   */
  private isOfRoom(test: string, room: string): boolean {
    const [, tier, folder = ''] = test.split('/');
    if (folder === room) return true;
    if (tier === 'unit' || !folder.endsWith('.test.ts')) return false;
    const imported = this.importsFrom(test, (path) => path.startsWith(`test/${tier}/`));
    return [...imported].some((path) => path.startsWith(`src/${room}/`));
  }

  /** Returns the tests in the room of `path` that import `path`, or all tests of the room if no test imports it. */
  of(path: string): string[] {
    const ofRoom = this.tests.filter((test) => this.isOfRoom(test, roomOf(path)));
    const importing = ofRoom.filter((test) => this.importsFrom(test, () => true).has(path));
    return importing.length > 0 ? importing : ofRoom;
  }
}
