/* Tests the answers to commands and options that weir no longer has (src/runtime/removed-names.ts). */
import { tmpdir } from 'node:os';
import { expect, test } from '@jest/globals';
import { CommandHost } from '../support/weir/commands.js';

const host = new CommandHost();

test.each([
  [
    ['suggest', '--by', 'tenant', 'access.log'],
    /^weir: weir suggest was removed; write a limit in "phase: monitoring"/,
  ],
  [['suggest', '--help'], /^weir: weir suggest was removed/],
  [
    ['bucket', 'grant', 'tenant=a', '--tokens', '5', '--over'],
    /^weir bucket: --over: weir bucket grant fills up to the limit; to allow more, raise the limit/,
  ],
  [
    ['diff', 'a.yaml', 'b.yaml', '--replay', 'access.log'],
    /^weir diff: --replay: weir diff no longer reads access logs; leave the option out, /,
  ],
  [
    ['diff', '--max-newly-denied=0', 'a.yaml', 'b.yaml'],
    /^weir diff: --max-newly-denied: weir diff no longer reads/,
  ],
  [
    ['bucket', 'block', 'shop', 'customer=acme', '--for', '10m'],
    /^weir: weir bucket block was removed; set "blocked: true" for the customer in the table of plans/,
  ],
  [['bucket', 'unblock', '--id', 'k3'], /^weir: weir bucket unblock was removed; a block is "blocked: true"/],
  [
    ['bucket', 'allow', 'customer=acme'],
    /^weir: weir bucket allow was removed; set "unlimited: true" for the customer in the table of plans/,
  ],
  [
    ['bucket', 'disallow', 'customer=acme'],
    /^weir: weir bucket disallow was removed; an exemption is "unlimited: true"/,
  ],
  [['bucket', 'blocks'], /^weir: weir bucket blocks was removed; the table of plans names/],
])('weir %j says what to use instead', async (args, message) => {
  const { code, stdout, stderr } = await host.run({ args, folder: tmpdir() });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(message);
});
