import { expect, test } from '@jest/globals';
import { differingWorkers, type HealthDetail } from '../../../src/admin/health-detail.js';

test('workers with other policies are found, except for those that have not started', () => {
  const worker = { pid: 1, status: 'SERVING', storeUp: true } as const;
  const workers: HealthDetail['workers'] = [
    { ...worker, id: 1, policy: 'new' },
    { ...worker, id: 2, policy: 'old' },
    { ...worker, id: 3 },
  ];
  expect(differingWorkers({ workers }, 'new')).toEqual([{ id: 2, policy: 'old' }]);
  expect(differingWorkers({}, 'new')).toEqual([]);
});
