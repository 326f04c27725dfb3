import { useEffect, useState } from 'preact/hooks';
import type { HistoryAnswer, RuleSums } from '../../admin/page/messages.js';
import { type AnswerOrFailure, poll } from '../ask/client.js';
import { Charts } from '../parts/charts.js';
import { Fact, LongName, Name, Phase, Sign, Spoken, Switches } from '../parts/texts.js';
import { missingNote, overview, rates, sumsByRule } from '../state.js';
import type { DumpedPolicyRule } from '../text/dumped-policy.js';
import { shortCount } from '../text/numbers.js';
import { ruleKey } from '../text/rule-key.js';
import { briefText, visibleText } from '../text/shown-text.js';
import { utcText } from '../text/times.js';

/** Maximum number of characters of a name in a row. */
const ROW_TEXT = 80;
/** Options that only the facts of a rule show, because they do not change which requests are denied. */
const MINOR_OPTION = /^(?:on store failure|headers|request headers|denied|metadata) /;

interface RuleProps {
  readonly domain: string;
  readonly rule: DumpedPolicyRule;
}

/** A row for a rule, which opens to show its settings and charts. */
export function Rule({ domain, rule }: RuleProps) {
  const [open, setOpen] = useState(false);
  return (
    <details class="rule" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <span>
          <Name text={rule.path} most={ROW_TEXT} />{' '}
          {rule.name !== '' && <Name text={rule.name} most={ROW_TEXT} />}
        </span>
        <span class="note">{briefText(rule.limit_about)}</span>
        <span>
          {/* The last limit of a chain decides about its phase. */}
          {rule.then === null && <Phase phase={rule.phase.now} />} <Switches phase={rule.phase} />
          {rule.options_about
            .filter((option) => !MINOR_OPTION.test(option))
            .map((option) => (
              <span key={option} class="mark">
                {briefText(option)}
              </span>
            ))}
        </span>
        <Sums sums={sumsByRule.value.get(ruleKey(domain, rule.path))} />
      </summary>
      {open && (
        <div class="rule-body">
          <Facts {...rule} />
          <RuleCharts domain={domain} rule={rule.path} />
        </div>
      )}
    </details>
  );
}

/** A full description of a rule. */
function Facts({ path, limit_about, options_about, phase, then, matchers = [] }: DumpedPolicyRule) {
  return (
    <dl class="facts">
      <Fact term="Rule">
        <LongName text={path} />
      </Fact>
      <Fact term="Limit">{visibleText(limit_about)}</Fact>
      <Fact term="Phase">
        {then === null ? <Phase phase={phase.now} /> : 'The phase of the last limit of the chain applies.'}
        {phase.active !== undefined && ` Active from ${utcText(Date.parse(phase.active) / 1000)}.`}
      </Fact>
      <Fact term="Options">{visibleText(options_about.join('; '))}</Fact>
      {matchers.map(({ key, value_cidr: blocks = [], value_regex: patterns = [] }) => (
        <Fact key={key} term="Matches">
          <Name text={key} />: <LongName text={[...blocks, ...patterns].join('  ')} />
        </Fact>
      ))}
    </dl>
  );
}

/** The counts of a rule in the last minute and hour. */
function Sums({ sums }: { readonly sums: RuleSums | undefined }) {
  if (sums === undefined && missingNote.value === undefined)
    return <Spoken>no requests in the last hour</Spoken>;
  if (sums === undefined) return <span class="sums note">not recorded</span>;
  return (
    <span class="sums">
      <Figure sums={sums} kind="denied" name="denied" sign="▲" />
      <Figure sums={sums} kind="would" name="would be denied" sign="◆" />
      <Figure sums={sums} kind="ok" name="allowed" sign="●" />
    </span>
  );
}

interface FigureProps {
  readonly sums: RuleSums;
  readonly kind: 'denied' | 'would' | 'ok';
  readonly name: string;
  readonly sign: string;
}

function Figure({ sums: { minute, hour }, kind, name, sign }: FigureProps) {
  return (
    <span class={`figure ${kind}${hour[kind] === 0 ? ' note' : ''}`}>
      <Sign sign={sign} />
      <Spoken>{name}: </Spoken>
      <span class="of-minute">{shortCount(minute[kind])}</span>
      <Spoken> in the last minute, </Spoken>
      <span class="of-hour note">/ {shortCount(hour[kind])}</span>
      <Spoken> in the last hour; </Spoken>
    </span>
  );
}

function RuleCharts({ domain, rule }: { readonly domain: string; readonly rule: string }) {
  const [answer, setAnswer] = useState<AnswerOrFailure<HistoryAnswer>>();
  const { ends } = rates.value;
  useEffect(() => {
    void poll<HistoryAnswer>('history', { rules: [{ domain, rule }] }).then(setAnswer);
  }, [domain, rule, ends]);
  if (answer === undefined) return <p class="note">Loading…</p>;
  if (!answer.ok) return <p class="note">The rates of this rule could not be loaded: {answer.error}</p>;
  const series = answer.body.series?.[0];
  if (series == null) return <p class="note">{noSeriesReason()}</p>;
  const subject = `the rule ${briefText(rule)} in the domain ${briefText(domain)}`;
  return <Charts {...answer.body} series={series} subject={subject} />;
}

function noSeriesReason(): string {
  if (overview.value?.keeps.history === 0)
    return 'HISTORY_RULES is 0, so weir does not record the rates of individual rules.';
  if (!rates.value.crowded) return 'No request matched this rule in the last hour.';
  return 'No request matched this rule in the last hour, or weir did not record its rates (HISTORY_RULES).';
}
