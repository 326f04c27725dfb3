import { chmodSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { newAdminToken } from '../../../../src/admin/admin-tokens.js';
import { openTokensFile, TokensFile } from '../../../../src/server/ports/tokens-file.js';
import type { Logger } from '../../../../src/telemetry/logger.js';
import { TempDir } from '../../../support/process/temp-dir.js';
import { waitFor } from '../../../support/process/wait-for.js';
import { settingsOf } from '../../../support/weir/settings.js';

const one = newAdminToken('one', 'read');
const two = newAdminToken('two', 'write');

let folder: TempDir;
let logged: string[];
let tokens: TokensFile | undefined;
const keep = (about: unknown, message?: string): number => logged.push(message ?? String(about));
const log = { info: keep, warn: keep, error: keep } as unknown as Logger;

beforeEach(() => {
  folder = new TempDir();
  logged = [];
});
afterEach(() => {
  tokens?.close();
});

const logs = (pattern: RegExp) =>
  waitFor(String(pattern), () => logged.some((line) => pattern.test(line)) || undefined);

test('reloads a swapped Secret; an invalid file keeps the current tokens, and is reported once', async () => {
  const version = (name: string, text: string): void => {
    folder.write(`${name}/tokens`, text);
    symlinkSync(name, folder.join('..data_tmp'));
    renameSync(folder.join('..data_tmp'), folder.join('..data'));
  };
  version('..1', one.line);
  symlinkSync('..data/tokens', folder.join('tokens'));
  tokens = new TokensFile(folder.join('tokens'), log);
  expect([tokens.find(one.token)?.right, tokens.find(two.token)]).toEqual(['read', undefined]);
  version('..2', two.line);
  await logs(/^new tokens are in effect$/);
  expect([tokens.find(one.token), tokens.find(two.token)?.right]).toEqual([undefined, 'write']);
  version('..3', `${two.token} write`);
  await logs(
    /^ADMIN_TOKENS_FILE: \/.*\/tokens:1: the line does not have three words; .*; the previous tokens stay in effect$/,
  );
  expect(tokens.find(two.token)?.name).toBe('two');
  version('..4', '# nobody any more');
  await waitFor('no tokens', () => tokens?.find(two.token) === undefined || undefined);
  expect(logged).toHaveLength(3);
  expect(logged.join()).not.toContain(two.token);
});

test('a removed file keeps the current tokens', async () => {
  tokens = new TokensFile(folder.write('tokens', one.line), log);
  rmSync(folder.join('tokens'));
  await logs(/the file does not exist; correct the path; the previous tokens stay in effect$/);
  expect(tokens.find(one.token)?.name).toBe('one');
});

test('a world-writable file causes a warning', () => {
  const file = folder.write('tokens', one.line);
  chmodSync(file, 0o666);
  tokens = new TokensFile(file, log);
  expect(logged).toEqual([
    expect.stringMatching(/^ADMIN_TOKENS_FILE: every user on this machine can write to .*chmod o-w/),
  ]);
});

test.each([
  [
    'a file that is not there',
    '',
    /^ADMIN_TOKENS_FILE: cannot read .*the file does not exist; correct the path$/,
  ],
])('%s prevents the start', (_, text, message) => {
  const file = text === '' ? folder.join('none') : folder.write('tokens', text);
  expect(() => new TokensFile(file, log)).toThrow(message);
});

test.each([
  [{ DEBUG_HOST: '0.0.0.0' }, 1],
  [{ DEBUG_HOST: '::1' }, 0],
  [{ DEBUG_HOST: '0.0.0.0', DEBUG_SERVER_TLS_CERT: 'a', DEBUG_SERVER_TLS_KEY: 'b' }, 0],
])('tokens in clear text over a network cause a warning: %j', (environment, warnings) => {
  const settings = settingsOf({ ADMIN_TOKENS_FILE: folder.write('tokens', one.line), ...environment });
  tokens = openTokensFile(settings, log);
  expect(logged.filter((line) => line.includes('uses plain text'))).toHaveLength(warnings);
});
