/** Worker thread that renderConfig starts for one text. */
import { rlconfigText } from '../show/rlconfig-text.js';
import { runTask } from './policy-task.js';
import type { ConfigRequest } from './render-config.js';

runTask<ConfigRequest>(({ form, ...shown }, [policySet]) =>
  new TextEncoder().encode(rlconfigText(form, { ...shown, policySet })),
);
