import { dirname, join, normalize } from 'node:path';
import { roomOf } from './sample.js';

const TEST = /^test\/(unit|property|contract)\/.*\.test\.ts$/;

/** Which tests of a room can notice a change of a source file. */
export class TestsOfRooms {
  private readonly imports: ReadonlyMap<string, readonly string[]>;
  private readonly tests: readonly string[];

  /** Takes the texts of all files of src/ and test/, by path. */
  constructor(texts: ReadonlyMap<string, string>) {
    // A file also names the threads that it starts: the text 'worker.js' counts as an import.
    const importsOf = (path: string, text: string) =>
      [...text.replace(/^(?:import|export) type [^;]*;/gm, '').matchAll(/'([\w/.-]+)\.js'/g)]
        .map(([, spec]) => normalize(join(dirname(path), `${spec}.ts`)))
        .filter((one) => texts.has(one));
    this.imports = new Map([...texts].map(([path, text]) => [path, importsOf(path, text)]));
    this.tests = [...texts.keys()].filter((path) => TEST.test(path));
  }

  /** Files that are imported from `path`, directly or not, by files that `isOpen`. */
  private reach(path: string, isOpen: (path: string) => boolean): ReadonlySet<string> {
    const reached = new Set<string>([path]);
    for (const one of reached) {
      if (isOpen(one)) for (const imported of this.imports.get(one) ?? []) reached.add(imported);
    }
    return reached;
  }

  /**
   * A test belongs to the room that its folder is named after. One beside these folders belongs to each room that it,
   * or a helper in its tier, imports from.
   */
  private isOfRoom(test: string, room: string): boolean {
    const [, tier, folder = ''] = test.split('/');
    if (folder === room) return true;
    if (tier === 'unit' || !folder.endsWith('.test.ts')) return false;
    const reached = this.reach(test, (path) => path.startsWith(`test/${tier}/`));
    return [...reached].some((path) => path.startsWith(`src/${room}/`));
  }

  /** Returns the tests of the room of `path` that import it; all tests of the room where none does. */
  of(path: string): string[] {
    const ofRoom = this.tests.filter((test) => this.isOfRoom(test, roomOf(path)));
    const reaching = ofRoom.filter((test) => this.reach(test, () => true).has(path));
    return reaching.length > 0 ? reaching : ofRoom;
  }
}
