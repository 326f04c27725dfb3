import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TempDir } from '../../support/process/temp-dir.js';
import { type CommandResult, runCommands } from '../../support/weir/commands.js';

/** A mistake that people make, and what they are told. */
export interface Mistake {
  readonly what: string;
  /** What stands after `weir`. */
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Files of the working directory, by name. */
  readonly files?: Readonly<Record<string, string>>;
  readonly code: number;
  /** All that is printed. */
  readonly prints: string;
}

/** A mistake in a policy file. */
export interface BadPolicy {
  readonly what: string;
  /** The text of shop.yaml, or files by name. */
  readonly policy: string | Readonly<Record<string, string>>;
  /** It is only warned about. */
  readonly warning?: true;
  readonly prints: string;
}

/** What `weir check-config` says of it; a start says the same. */
export function checked({ what, policy, warning, prints }: BadPolicy): Mistake {
  return {
    what,
    args: ['check-config', typeof policy === 'string' ? 'shop.yaml' : '.'],
    files: typeof policy === 'string' ? { 'shop.yaml': policy } : policy,
    code: warning === true ? 0 : 1,
    prints,
  };
}

/** The first lines of a policy, and a limit of the descriptor that they end with. */
export const CUSTOMER = `domain: shop
descriptors:
  - key: customer
`;
export const LIMIT = `    rate_limit: { unit: minute, requests_per_unit: 10 }
`;

/** A policy whose one descriptor has this line. */
export const node = (line: string): string => `${CUSTOMER}    ${line}\n${LIMIT}`;

/**
 * A test for each mistake. `prepare` gives texts that are not known before, and the names by which `args`,
 * `environment` and `prints` mention them, such as `<port>`; `<folder>` is the working directory.
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
  }, 60_000);
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
