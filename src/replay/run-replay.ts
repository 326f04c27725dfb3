import type { PolicySet } from '../policy/policy-set.js';
import { quantity } from '../quantity.js';
import type { HoldNames } from '../service/answer/answer-options.js';
import { absentValues } from './absent-values.js';
import { type ConfiguredCalls, callsInLog } from './calls-in-log.js';
import { entryList, type NamedEntry, namedEntry } from './entry-sources.js';
import type { MissingValue } from './envoy/log-fields.js';
import type { RequestCalls } from './envoy/route-table.js';
import type { Columns } from './log/columns.js';
import { LogError, type ReadTotals } from './log/logged-request.js';
import type { OpenLog } from './log/open-log.js';
import { Replay } from './replay.js';
import { checkGates, type Gate, gateGroups } from './report/gates.js';
import { unsortedWarning } from './report/log-sentences.js';
import { shareText } from './report/numbers.js';
import type { ReplayReport, TotalReport } from './report/report.js';
import { GroupTally } from './tally/group-tally.js';
import { timeText } from './tally/time-text.js';

/** A policy with the name that reports give it. */
export interface NamedPolicy {
  readonly name: string;
  readonly policySet: PolicySet;
  /** Whether it was loaded as if all of its phases were `active`. */
  readonly isPreview?: boolean;
}

/** Input of {@link runReplay}. */
export interface ReplayInput {
  readonly log: OpenLog;
  readonly paths: readonly string[];
  readonly columns: Columns;
  /** Undefined for a log that contains descriptors. */
  readonly envoy: ConfiguredCalls | undefined;
  readonly after: NamedPolicy;
  readonly before: NamedPolicy | undefined;
  readonly by: string | undefined;
  /** Number of groups in the report. */
  readonly shownGroups: number;
  readonly gates: readonly Gate[];
  readonly warmMicros: number;
  readonly holdNames: HoldNames;
  /** Called after each batch. */
  readonly onProgress: (totals: ReadTotals) => void;
  /** Ends the replay early, with a partial report. */
  readonly interrupt: AbortSignal;
}

const PREVIEW = 'The new policy was decided as if all of its phases were active, because of --as-active.';
/** Why a report is partial. */
const INTERRUPTED = 'the replay was interrupted';

/** Decides the requests of a log, and returns the report; or a message if the log cannot be replayed. */
export async function runReplay(input: ReplayInput): Promise<ReplayReport | string> {
  const { log, columns, envoy, after, before, warmMicros, holdNames, interrupt } = input;
  const calls = callsInLog(log, columns, envoy);
  if (typeof calls === 'string') return calls;
  const by = input.by === undefined ? undefined : namedEntry(input.by, envoy?.sources);
  const gates = input.gates.map((gate) => {
    const { group } = gate;
    return group === undefined
      ? gate
      : { ...gate, group: { ...group, ...namedEntry(group.key, envoy?.sources) } };
  });
  const groups = [...gateGroups(gates, by?.key)].map(([key, only]) => new GroupTally(key, only));
  const replay = new Replay({
    after: after.policySet,
    before: before?.policySet,
    callsOf: calls.callsOf,
    columns,
    groups,
    holdNames,
    warmMicros,
  });
  let totals: ReadTotals | undefined;
  let partial: string | undefined;
  try {
    // This also ends the wait for standard input.
    interrupt.addEventListener('abort', () => void log.close());
    for await (const batch of log.requests(columns)) {
      if (interrupt.aborted) break;
      await replay.add(batch.requests);
      ({ totals } = batch);
      input.onProgress(totals);
    }
  } catch (error) {
    if (interrupt.aborted) partial = INTERRUPTED;
    else if (!(error instanceof LogError)) throw error;
    else if (totals === undefined || totals.requests === 0) return error.message;
    else partial = error.message.replaceAll(/\s*\n\s*/g, ' ');
  } finally {
    await log.close();
  }
  if (interrupt.aborted) partial = INTERRUPTED;
  replay.finish();
  if (totals === undefined || replay.firstMicros === undefined)
    return partial === undefined
      ? 'no request of the log was counted; shorten --warm, or use a longer log'
      : `${partial} before a request was counted`;
  const warnings = [
    ...unsortedWarning(totals),
    ...absentValues({ log, columns, needs: envoy?.needs ?? [], totals }),
  ];
  if (by !== undefined && replay.tally.total().requests > 0 && groups[0]?.isEmpty === true)
    return [
      `no descriptor in the log has the entry "${by.key}" of --by; its entries are ` +
        entryList(new Set([...replay.keys, ...derivedKeys(after, by.key)]), envoy?.sources),
      ...warnings,
    ].join('. ');
  if (replay.tally.total().requests === 0 || !replay.knowsDomain)
    warnings.push(unmatchedSentence(replay.firstCall, after));
  const report = reportOf(input, by, replay, totals, partial, calls.missing);
  return { ...report, gates: checkGates(gates, report, groups, doubtAbout(replay, after, totals)), warnings };
}

/** Returns the keys of entries that a policy derives, except one. */
function derivedKeys({ policySet }: NamedPolicy, except: string): readonly string[] {
  return [...policySet.domains.values()]
    .flatMap(({ steps }) => steps.map(({ entry }) => entry))
    .filter((key) => key !== except);
}

/** Returns why the log cannot decide any gate, as a clause. */
function doubtAbout(
  { knowsDomain, firstCall }: Replay,
  { name, policySet }: NamedPolicy,
  { holdEnds }: ReadTotals,
): string | undefined {
  if (firstCall !== undefined && !knowsDomain)
    return `the log has the domain "${firstCall.domain}", and ${name} has only ${domainsOf(policySet)}`;
  return holdEnds > 0 ? 'the decision log has no hold tokens, so holds last too long' : undefined;
}

function domainsOf({ domains }: PolicySet): string {
  return [...domains.keys()].map((domain) => `"${domain}"`).join(', ');
}

/** Returns why no request meets a limit: Envoy makes no calls, or the policy does not match the first call. */
function unmatchedSentence(call: RequestCalls | undefined, { name, policySet }: NamedPolicy): string {
  if (call === undefined)
    return 'No request meets a limit, because Envoy would not make a call for any of them.';
  const keys = call.start[0]?.entries.map(({ key }) => `"${key}"`) ?? [];
  return (
    `No request meets a limit. The first call in the log has the domain "${call.domain}" and a descriptor with the ` +
    `entries ${keys.join(', ')}. ${name} has the domains ${domainsOf(policySet)}. Write a rule for these entries.`
  );
}

function reportOf(
  { paths, log, after, before, shownGroups }: ReplayInput,
  by: NamedEntry | undefined,
  replay: Replay,
  totals: ReadTotals,
  partial: string | undefined,
  missing: readonly MissingValue[],
): Omit<ReplayReport, 'warnings' | 'gates'> {
  const { tally, firstMicros = 0, lastMicros } = replay;
  const { incomplete } = totals;
  const candidates = tally.candidates.report();
  const [groupsBy] = by === undefined ? [] : tally.groups;
  const knowsCapacity = incomplete.length === 0 && partial === undefined;
  const shares = incomplete.flatMap(({ share }) => share ?? []);
  const sample = shares.length === 0 ? undefined : Math.min(...shares);
  return {
    report: 1,
    ...(partial !== undefined && { partial }),
    log: {
      files: paths,
      format: log.formats.map(({ title }) => title).join(', '),
      lines: totals.lines,
      requests: totals.requests,
      unlimited: tally.unlimited,
      first: timeText(firstMicros),
      last: timeText(lastMicros),
      unreadable: totals.unreadable,
      late: totals.late,
      far: totals.far,
      ...(sample !== undefined && { sample }),
    },
    before: before === undefined ? { kind: 'log', name: 'the log' } : { kind: 'policy', name: before.name },
    after: { name: after.name },
    total: tally.total(),
    rules: tally.rules(replay.after.buckets.all(), knowsCapacity),
    ...(candidates.length > 0 && { candidates }),
    ...(groupsBy !== undefined && {
      groups: { ...groupsBy.report(shownGroups), ...(by?.source !== undefined && { source: by.source }) },
    }),
    timeline: tally.timeline(),
    notes: [
      ...(after.isPreview === true ? [PREVIEW] : []),
      ...notesOf(replay, before !== undefined, totals, missing),
    ],
  };
}

/** Share of the requests by which totals may differ before the report names a remedy. */
const WIDE = 0.01;

/** Returns how certain the totals are, because open decisions often balance each other. */
function certaintyText({ requests, deniedAfter, newlyDenied, newlyAllowed }: TotalReport): string {
  const widths = [deniedAfter, newlyDenied, newlyAllowed].map(({ least, most }) => most - least);
  const widest = Math.max(...widths);
  if (widest === 0) return 'the totals are certain.';
  const remedy = widest / requests > WIDE ? ' Log microseconds, or decided_at, for narrower ranges.' : '';
  return `the totals are certain up to ${quantity(widest, 'request')}.${remedy}`;
}

/** Returns what a reader must know to judge the numbers. */
function notesOf(
  replay: Replay,
  comparesPolicies: boolean,
  { incomplete, holdEnds }: ReadTotals,
  missing: readonly MissingValue[],
): string[] {
  const notes = [
    'The report assumes that callers do not react: a denied request is not sent again, and a retry in the log is ' +
      'still sent.',
  ];
  const { tally, after } = replay;
  const { uncertain } = tally;
  if (uncertain > 0)
    notes.push(
      `The times in the log leave ${shareText(uncertain / tally.requests)} of the decisions open, but ` +
        `${certaintyText(tally.total())} Numbers such as 3–5 are the least and the most that are possible.`,
    );
  for (const { reason } of incomplete)
    notes.push(
      `The log does not contain all requests, because ${reason}. So the replay may deny too few requests, and does ` +
        'not tell which capacity would suffice.',
    );
  if (!comparesPolicies)
    notes.push(
      'Requests that the log says were denied count as denied before. Their durations and sizes are those of denials.',
    );
  if (replay.clockSteps > 0)
    notes.push(
      `The clock of the log was set back ${quantity(replay.clockSteps, 'time')}. The replay continues from the time ` +
        'before.',
    );
  if (holdEnds > 0)
    notes.push(
      `The decision log has ${quantity(holdEnds, 'end')} of holds without their hold tokens, which were left out. ` +
        'Holds therefore last until they expire, and concurrency limits and reservations may deny too many requests.',
    );
  for (const { member, users } of missing)
    notes.push(`The log lacks ${member}, which may change some descriptors (${users.join(', ')}).`);
  for (const [message, calls] of after.refused)
    notes.push(`weir would refuse ${quantity(calls, 'call')} as invalid: ${message}.`);
  if (after.evictions > 0)
    notes.push(`There were too many buckets, so ${quantity(after.evictions, 'bucket')} began again as full.`);
  if (after.laterUse.unknown !== undefined)
    notes.push(
      `The report does not tell which capacity of some limits would suffice, because ${after.laterUse.unknown}.`,
    );
  if (after.buckets.hasPlans)
    notes.push(
      'Limits with values from plans differ between customers, so the report does not tell which capacity would ' +
        "suffice. The peak use is a share of the customer's own limit.",
    );
  if (after.buckets.isFull)
    notes.push('There were too many buckets to say for all of them whether their decisions are certain.');
  if (tally.groups.some(({ isComplete }) => !isComplete))
    notes.push('There were too many groups, so the later ones are missing.');
  return notes;
}
