import { expect, test } from '@jest/globals';
import { FamilyRegistry } from '../../../src/telemetry/family-registry.js';
import { exposeProcess } from '../../../src/telemetry/metrics.js';

test('process_* and nodejs_* have the usual names for dashboards, and no others', async () => {
  const registry = new FamilyRegistry();
  exposeProcess(registry);
  const names = [...String(await registry.text()).matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);
  expect(names).toEqual([
    'process_cpu_user_seconds_total',
    'process_cpu_system_seconds_total',
    'process_cpu_seconds_total',
    'process_start_time_seconds',
    'process_resident_memory_bytes',
    'process_virtual_memory_bytes',
    'process_heap_bytes',
    'process_open_fds',
    'process_max_fds',
    'nodejs_eventloop_lag_seconds',
    'nodejs_eventloop_lag_min_seconds',
    'nodejs_eventloop_lag_max_seconds',
    'nodejs_eventloop_lag_mean_seconds',
    'nodejs_eventloop_lag_stddev_seconds',
    'nodejs_eventloop_lag_p50_seconds',
    'nodejs_eventloop_lag_p90_seconds',
    'nodejs_eventloop_lag_p99_seconds',
    'nodejs_active_resources',
    'nodejs_active_handles',
    'nodejs_active_requests',
    'nodejs_heap_size_total_bytes',
    'nodejs_heap_size_used_bytes',
    'nodejs_external_memory_bytes',
    'nodejs_heap_space_size_total_bytes',
    'nodejs_heap_space_size_used_bytes',
    'nodejs_heap_space_size_available_bytes',
    'nodejs_version_info',
    'nodejs_gc_duration_seconds',
  ]);
});
