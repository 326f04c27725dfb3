import { expect, test } from '@jest/globals';
import { LatestValueSender } from '../../../../src/server/workers/latest-value-sender.js';

test('only the latest value of each key waits for the current message', async () => {
  const sent: (readonly string[])[] = [];
  let arrive: () => void = () => {};
  const values = new LatestValueSender<string>((some) => {
    sent.push(some);
    return new Promise((resolve) => {
      arrive = resolve;
    });
  });
  values.put('1', 'first');
  for (let i = 0; i < 1000; i++) values.put(String(1 + (i % 2)), `value ${i}`);
  expect(sent).toEqual([['first']]);
  arrive();
  await Promise.resolve();
  expect(sent).toEqual([['first'], ['value 998', 'value 999']]);
  arrive();
  await Promise.resolve();
  values.put('3', 'last');
  expect(sent.slice(2)).toEqual([['last']]);
});
