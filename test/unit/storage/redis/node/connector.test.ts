import { Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { type ConnectorOwner, fixedConnector } from '../../../../../src/storage/redis/node/connector.js';

const OWNER: ConnectorOwner = { unreadBytes: 0, leaving: () => {}, sentinelFailed: () => {} };

/** Returns a stream that a connector has prepared. */
async function connected(owner: ConnectorOwner): Promise<Socket> {
  const stream = new Socket();
  const Connector = fixedConnector(owner, 60_000, () => stream);
  await new Connector({}).connect(() => {});
  return stream;
}

test('repeated errors of a connection do not end the process', async () => {
  const stream = await connected({ ...OWNER });
  for (let i = 0; i < 3; i++) expect(() => stream.emit('error', new Error('read ECONNRESET'))).not.toThrow();
  stream.destroy();
});

test('a connection ends if a reply is too long, and not because of many replies', async () => {
  const owner = { ...OWNER };
  const stream = await connected(owner);
  const chunk = Buffer.alloc(64 * 1024);
  for (let i = 0; i < 200; i++) {
    owner.unreadBytes = 0;
    stream.emit('data', chunk);
  }
  expect(stream.destroyed).toBe(false);
  for (let i = 0; i < 70; i++) stream.emit('data', chunk);
  expect(stream.destroyed).toBe(true);
});
