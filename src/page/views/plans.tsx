import { Portions } from '../parts/controls.js';
import { LongName, Name, Sentence, State } from '../parts/texts.js';
import { policies, policiesError } from '../state.js';
import type { DumpedDomain } from '../text/dumped-policy.js';
import { countOf } from '../text/numbers.js';
import { visibleText } from '../text/shown-text.js';

/** The plans of each domain, and the limits that depend on them. */
export function Plans() {
  if (policies.value === undefined) return <Sentence text={policiesError.value ?? 'Loading the policies…'} />;
  const domains = policies.value.domains.filter(({ policy }) => policy?.plans != null);
  if (domains.length === 0)
    return (
      <p class="empty">
        No policy in effect has plans. With <code>plans</code>, limits differ by customer. For the format, see
        docs/policy/plans.md.
      </p>
    );
  return <Portions items={domains} item={(one) => <DomainPlans key={one.domain} {...one} />} />;
}

function DomainPlans({ domain, policy }: DumpedDomain) {
  const { plans, rules = [] } = policy ?? {};
  const refused = plans?.refused ?? 0;
  return (
    <li class="card">
      <h3>
        <Name text={domain} />
      </h3>
      <p>
        <LongName text={plans?.about ?? ''} />{' '}
        {refused > 0 && <State kind="bad" text={`${countOf(refused, 'row')} refused`} />}
      </p>
      <Portions
        kind="bullets"
        items={plans?.define_about ?? []}
        item={(plan) => (
          <li key={plan}>
            <LongName text={plan} />
          </li>
        )}
      />
      <h4>Limits that vary by plan, for customers without a row</h4>
      <Portions
        kind="bullets"
        items={rules.filter(({ plan_values: values }) => values !== null)}
        item={(rule) => (
          <li key={rule.path}>
            <LongName text={rule.path} />: {visibleText(rule.limit_about)}
          </li>
        )}
      />
      <p>
        <a href="#bucket">Show the plan of a customer</a>
      </p>
    </li>
  );
}
