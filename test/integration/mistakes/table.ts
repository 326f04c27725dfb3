import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TempDir } from '../../support/process/temp-dir.js';
import { type CommandResult, runCommands } from '../../support/weir/commands.js';

/** A common mistake, with the text that weir prints. */
export interface Mistake {
  readonly what: string;
  /** Arguments after `weir`. */
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Files of the working directory, by name. */
  readonly files?: Readonly<Record<string, string>>;
  readonly code: number;
  /** The full output. */
  readonly prints: string;
}

/** A mistake in a policy file. */
export interface BadPolicy {
  readonly what: string;
  /** The text of shop.yaml, or files by name. */
  readonly policy: string | Readonly<Record<string, string>>;
  /** Set if weir only warns about the mistake. */
  readonly warning?: true;
  readonly prints: string;
}

/** Returns the mistake with the output of `weir check-config`; a start prints the same. */
export function checked({ what, policy, warning, prints }: BadPolicy): Mistake {
  return {
    what,
    args: ['check-config', typeof policy === 'string' ? 'shop.yaml' : '.'],
    files: typeof policy === 'string' ? { 'shop.yaml': policy } : policy,
    code: warning === true ? 0 : 1,
    prints,
  };
}

/** The first lines of a policy, and a limit for their last descriptor. */
export const CUSTOMER = `domain: shop
descriptors:
  - key: customer
`;
export const LIMIT = `    rate_limit: { unit: minute, requests_per_unit: 10 }
`;

/**
 * Defines a test for each mistake. `prepare` returns texts that are only known at run time, with the names by which
 * `args`, `environment` and `prints` refer to them, such as `<port>`; `<folder>` is the working directory.
 */
export function testMistakes(
  mistakes: readonly Mistake[],
  prepare: () => Promise<Readonly<Record<string, string>>> = async () => ({}),
): void {
  const folders: TempDir[] = [];
  let texts: readonly (readonly [name: string, text: string])[] = [];
  let results: readonly CommandResult[] = [];
  const filled = (text: string): string =>
    texts.reduce((all, [name, value]) => all.replaceAll(name, value), text);

  beforeAll(async () => {
    texts = Object.entries(await prepare());
    results = await runCommands(
      mistakes.map(({ args, environment = {}, files = {} }) => {
        const folder = new TempDir();
        folders.push(folder);
        for (const [name, text] of Object.entries(files)) folder.write(name, text);
        return {
          args: args.map(filled),
          folder: folder.path,
          environment: Object.fromEntries(
            Object.entries(environment).map(([name, value]) => [name, filled(value)]),
          ),
        };
      }),
    );
  });
  afterAll(() => {
    for (const folder of folders) folder.remove();
  });

  test.each(mistakes.map((mistake, i) => ({ ...mistake, i })))('$what', ({ i, code, prints }) => {
    const result = results[i];
    const printed = [['<folder>', folders[i]?.path ?? ''] as const, ...texts].reduce(
      (all, [name, value]) => all.replaceAll(value, name),
      result?.printed ?? '',
    );
    expect(printed).toBe(prints);
    expect(result?.code).toBe(code);
  });
}
