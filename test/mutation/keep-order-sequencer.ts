/** Test sequencer of jest that keeps the order of the test files on the command line. */
export default class KeepOrderSequencer {
  sort<Test extends { readonly path: string }>(tests: readonly Test[]): Test[] {
    const position = ({ path }: Test) => process.argv.indexOf(path);
    return [...tests].sort((a, b) => position(a) - position(b));
  }

  shard<Test>(tests: readonly Test[]): readonly Test[] {
    return tests;
  }

  allFailedTests<Test>(tests: readonly Test[]): readonly Test[] {
    return tests;
  }

  cacheResults(): void {}
}
