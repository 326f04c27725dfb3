import { expect, test } from '@jest/globals';
import { StorageError } from '../../../src/limiter/bucket-store.js';

test('the reason why a store could not decide has no stack trace, which would cost more than a refusal', () => {
  const cause = new Error('closed');
  const error = new StorageError('disconnected', 'Redis is unavailable', { unsent: true, cause });
  expect(error).toMatchObject({
    reason: 'disconnected',
    message: 'Redis is unavailable',
    unsent: true,
    cause,
  });
  expect(error).not.toHaveProperty('stack');
});
