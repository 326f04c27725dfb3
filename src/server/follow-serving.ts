import type { PolicyProvider } from '../config/policy-provider.js';
import type { Clock } from '../limiter/clock.js';
import type { PolicySet } from '../policy/policy-set.js';
import type { Closers } from '../runtime/closers.js';
import { Serving, type ServingConditions } from './serving.js';
import type { Settings } from './settings/settings-table.js';
import type { Store } from './store/store.js';
import { StoreNeed } from './store/store-need.js';

interface FollowedSettings {
  readonly settings: Settings;
  readonly policies: PolicyProvider;
  readonly clock: Clock;
}

function hasDomain(policies: PolicySet | undefined): boolean {
  return policies !== undefined && policies.domains.size > 0;
}

/**
 * Tracks whether this process should get requests, depending on its store and its policies. `onChange` is called with
 * the state at first and whenever it changes, and without an argument when the store becomes available or unavailable.
 */
export function followServing(
  { settings, policies, clock }: FollowedSettings,
  store: Store,
  closers: Closers,
  onChange: (isServing?: boolean) => void,
): Serving {
  const storeNeed = new StoreNeed(clock, settings.shadowMode, (needed) =>
    serving.update({ needsStore: needed }),
  );
  closers.add(async () => storeNeed.close());
  const conditions: ServingConditions = {
    draining: false,
    storeUp: store.up(),
    storeReached: store.up(),
    needsStore: storeNeed.update(policies.current()),
    followsStore: settings.redisHealthFollows,
    needsDomain: settings.healthyWithConfig,
    hasDomain: hasDomain(policies.current()),
  };
  const serving = new Serving(conditions, onChange);
  store.onChange((up) => {
    serving.update(up ? { storeUp: true, storeReached: true } : { storeUp: false });
    onChange();
  });
  policies.onReload(() => {
    store.reloaded();
    const current = policies.current();
    serving.update({ needsStore: storeNeed.update(current), hasDomain: hasDomain(current) });
  });
  return serving;
}
