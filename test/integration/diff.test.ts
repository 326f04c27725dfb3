/* Tests the command `weir diff`: arguments, exit codes and output streams. */
import { describe, expect, test } from '@jest/globals';
import { TempDir } from '../support/process/temp-dir.js';
import { CommandHost } from '../support/weir/commands.js';

const folder = new TempDir();
const host = new CommandHost();

const policy = (requests: number, domain = 'd'): string =>
  `domain: ${domain}\ndescriptors: [{ key: k, rate_limit: { unit: minute, requests_per_unit: ${requests} } }]\n`;
folder.write('ten.yaml', policy(10));
folder.write('five.yaml', policy(5));
folder.write('bad.yaml', 'domain: d\ndescriptors: [{ kee: k }]\n');
folder.write('old/a.yaml', policy(10));
folder.write('new/a.yaml', policy(10));
folder.write('new/b.yaml', policy(5, 'e'));

const diff = (...args: readonly string[]) => host.run({ args: ['diff', ...args], folder: folder.path });

describe('weir diff', () => {
  test.each([
    [['ten.yaml', 'ten.yaml'], 0, 'nothing changes\n'],
    [['five.yaml', 'ten.yaml'], 0, '\n1 loosens\n'],
    [['ten.yaml', 'five.yaml'], 3, '\n1 tightens\n'],
    [
      ['old', 'new'],
      3,
      'domain e\n  added (tightens): the domain, with 1 rule; its requests previously had no limit\n',
    ],
    [['new', 'old'], 0, '\n1 removed\n'],
  ])('%j: exit code %i', async (args, code, text) => {
    const result = await diff(...args);
    expect(result).toMatchObject({ code, stderr: '' });
    expect(result.stdout).toContain(text);
  });

  test('exits with 1 and prints every error of an invalid policy', async () => {
    const { code, stdout, stderr } = await diff('ten.yaml', 'bad.yaml');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('bad.yaml:2:17: descriptors[0].kee: unknown key "kee"');
    expect(await diff('gone.yaml', 'ten.yaml')).toMatchObject({ code: 1 });
  });

  test.each([[[]], [['ten.yaml']], [['ten.yaml', 'ten.yaml', 'ten.yaml']], [['--nonsense', 'a', 'b']]])(
    'rejects %j',
    async (args) => {
      const { code, stderr } = await diff(...args);
      expect(code).toBe(2);
      expect(stderr).toMatch(/^weir diff: .*see weir diff --help\n$/);
    },
  );

  test('applies --lease-for to both policies', async () => {
    const { stdout } = await diff(
      '--default-algorithm',
      'token_bucket',
      '--lease-for',
      '5s',
      'ten.yaml',
      'five.yaml',
    );
    expect(stdout).toContain(
      'token bucket (9 tokens, 10 every 1m) becomes token bucket (4 tokens, 5 every 1m)',
    );
    const wrong = await diff('--lease-for', '1ms', 'ten.yaml', 'five.yaml');
    expect(wrong.stderr).toContain('--lease-for must be a duration from 5ms to 10s');
  });

  test('applies --default-algorithm to both policies', async () => {
    const { stdout } = await diff('--default-algorithm', 'token_bucket', 'ten.yaml', 'five.yaml');
    expect(stdout).toContain(
      'token bucket (10 tokens, 10 every 1m) becomes token bucket (5 tokens, 5 every 1m)',
    );
  });

  test('prints JSON with --json', async () => {
    const { code, stdout } = await diff('--json', 'ten.yaml', 'five.yaml');
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toEqual({
      tightens: true,
      summary: {
        tighten: 1,
        loosen: 0,
        appear: 0,
        vanish: 0,
        change: 0,
        tightenByAppearing: 0,
        tightenByVanishing: 0,
      },
      changes: [
        {
          domain: 'd',
          path: 'k',
          setting: 'limit',
          effect: 'tightens',
          tightens: true,
          before: '10 per minute',
          after: '5 per minute',
          text: '10 per minute becomes 5 per minute; fewer hits per window',
        },
      ],
    });
  });
});
