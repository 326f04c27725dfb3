import { signal } from '@preact/signals';
import { Portions, RangeChoice, TextField } from '../parts/controls.js';
import { LongName, Name, Phase, Sentence, Sign, State, Switches } from '../parts/texts.js';
import { policies, policiesError } from '../state.js';
import type { DumpedDomain } from '../text/dumped-policy.js';
import { countOf } from '../text/numbers.js';
import { NoDomain } from './overview.js';
import { Rule } from './rule.js';

const filter = signal('');

/** All rules, in the order of the policy. */
export function Rules() {
  return (
    <>
      <div class="controls">
        <TextField id="rules-filter" label="Filter by path or name" text={filter} type="search" />
        <RangeChoice />
      </div>
      <div id="rules-place">
        <Domains />
      </div>
    </>
  );
}

function Domains() {
  if (policies.value === undefined) return <Sentence text={policiesError.value ?? 'Loading the policies…'} />;
  const { domains } = policies.value;
  if (domains.length === 0) return <NoDomain />;
  const text = filter.value.trim().toLowerCase();
  const found = domains.flatMap((dumped) => {
    const isNamed = dumped.domain.toLowerCase().includes(text);
    const all = dumped.policy?.rules ?? [];
    const rules = all.filter(({ path, name }) => `${path}\n${name}`.toLowerCase().includes(text));
    return isNamed || rules.length > 0 ? [{ dumped, rules: isNamed ? all : rules }] : [];
  });
  const count = found.reduce((sum, { rules }) => sum + rules.length, 0);
  return (
    <>
      <p class="note" role="status">
        {text !== '' && count === 0 ? countOf(found.length, 'domain') : countOf(count, 'rule')}
        {text !== '' && ' found'}
      </p>
      <p class="note">
        Requests in the last minute / last hour: <Sign sign="▲" />
        denied, <Sign sign="◆" />
        would be denied, <Sign sign="●" />
        allowed. Open a row to see its charts.
      </p>
      {found.length === 0 && <p>No domain name, rule path or rule name contains this text.</p>}
      <Portions
        items={found}
        item={({ dumped, rules }) => (
          <li key={dumped.domain} class="card">
            <h3>
              <Name text={dumped.domain} />
            </h3>
            <DomainHead {...dumped} />
            <Portions
              key={text}
              items={rules}
              item={(rule) => (
                <li key={rule.path}>
                  <Rule domain={dumped.domain} rule={rule} />
                </li>
              )}
            />
          </li>
        )}
      />
    </>
  );
}

function DomainHead({ state, files, policy }: DumpedDomain) {
  if (policy === undefined)
    return (
      <p>
        <State kind="bad" text={`not in effect${state === 'absent' ? ': its files are invalid' : ''}`} />{' '}
        {files.map((file) => (
          <LongName key={file} text={file} />
        ))}
      </p>
    );
  const { phase, rules, derive, plans } = policy;
  return (
    <>
      <p>
        <Phase phase={phase.now} />{' '}
        {phase.now === 'active'
          ? 'Requests over a limit are denied, unless the limit is soft. '
          : 'Requests over a limit are allowed, and counted as “would be denied”. '}
        {countOf(rules.length, 'rule')}. <Switches phase={phase} />{' '}
        {plans !== null && <a href="#plans">Plans</a>}
      </p>
      {derive.length > 0 && (
        <details>
          <summary class="note">Entries derived before matching ({countOf(derive.length, 'step')})</summary>
          {derive.map(({ step, rules: conditions = [] }) => (
            <div key={step}>
              <LongName text={step} />
              <Portions
                kind="bullets"
                items={conditions}
                item={(condition) => (
                  <li key={condition}>
                    <LongName text={condition} />
                  </li>
                )}
              />
            </div>
          ))}
        </details>
      )}
    </>
  );
}
