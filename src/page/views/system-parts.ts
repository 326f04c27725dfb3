import type { Overview, OverviewDomain, OverviewNode, OverviewWorker } from '../../admin/page/messages.js';
import { type Child, el } from '../dom/element.js';
import { tableOf } from '../dom/table.js';
import { nameOf, relativeTime, sentence, stateOf, timeOf, wholeName } from '../dom/texts.js';
import { type PhaseSwitch, phaseWord, switchWords } from '../text/limit-words.js';
import { countOf, millisecondsText } from '../text/numbers.js';
import { spanText } from '../text/times.js';

/** A phase as a sign and a word. */
export function phaseState(phase: string): HTMLElement {
  return stateOf(phase === 'active' ? 'good' : 'watch', phaseWord(phase));
}

/** A change of phase that is to come: when, and how long until then. */
export function switchShown(one: PhaseSwitch): HTMLElement {
  return el('span', {}, `${switchWords(one)}, `, relativeTime(one.at));
}

/** The store, and each server that buckets lie on. */
export function storePart({ name, up, nodes }: Overview['store']): readonly Child[] {
  const state = up ? stateOf('good', 'up') : stateOf('bad', 'away');
  const head = el('p', {}, 'Buckets are kept in ', nameOf(name), ': ', state);
  if (nodes.length === 0) {
    return [
      head,
      el('p', { class: 'note' }, 'In memory each server counts for itself, and forgets with its end.'),
    ];
  }
  return [
    head,
    tableOf<OverviewNode>(
      {
        caption: 'Servers that buckets lie on',
        columns: [
          { heading: 'Server', cell: ({ node }) => nameOf(node) },
          { heading: 'State', cell: nodeState },
          {
            heading: 'Answers after',
            figures: true,
            cell: latencyCell,
          },
          { heading: 'For', cell: ({ redis }) => (redis === 'main' ? 'all limits' : 'limits per second') },
        ],
      },
      nodes,
    ),
  ];
}

/** How long one that is away took before says nothing of now. */
function latencyCell({ up, latency_ms: latency }: OverviewNode): string {
  if (up === 0) return '–';
  return latency === null ? 'no answer yet' : millisecondsText(latency);
}

function nodeState({ up, of, reason }: OverviewNode): readonly Child[] {
  const processes = of === 1 ? '' : ` for ${up} of ${countOf(of, 'process', 'processes')}`;
  if (up === of) return [stateOf('good', `up${processes}`)];
  const why = reason === undefined ? 'circuit breaker open' : `circuit breaker open: ${reason}`;
  return [stateOf('bad', up === 0 ? 'away' : `up${processes}`), el('span', { class: 'why' }, ` ${why}`)];
}

/** Each worker process. */
export function workersPart(workers: readonly OverviewWorker[]): readonly Child[] {
  if (workers.length === 0) return [el('p', { class: 'note' }, 'One process does all (WORKERS is 1).')];
  return [
    tableOf<OverviewWorker>(
      {
        caption: 'Worker processes',
        columns: [
          { heading: 'Worker', cell: ({ id }) => String(id) },
          {
            heading: 'State',
            cell: ({ status, silent_seconds: silent }) => [
              silent === undefined
                ? stateOf(
                    status === 'SERVING' ? 'good' : 'bad',
                    status === 'SERVING' ? 'serving' : 'not serving',
                  )
                : stateOf('bad', `has not answered for ${spanText(silent)}`),
            ],
          },
          { heading: 'Store', cell: ({ store_up: up }) => stateOf(up ? 'good' : 'bad', up ? 'up' : 'away') },
          { heading: 'Process', figures: true, cell: ({ pid }) => String(pid) },
        ],
      },
      workers,
    ),
  ];
}

const DOMAIN_STATES: Readonly<Record<OverviewDomain['state'], Parameters<typeof stateOf>>> = {
  ok: ['good', 'as the files say'],
  kept: ['bad', 'the files are bad; the last good version is in force'],
  absent: ['bad', 'the files are bad; not in force'],
};

/** The domains, and how they stand. */
export function domainsPart({ domains, more_domains: more }: Overview['policy']): readonly Child[] {
  if (domains.length === 0) return [noDomain()];
  const table = tableOf<OverviewDomain>(
    {
      caption: 'Domains',
      columns: [
        { heading: 'Domain', cell: ({ domain }) => wholeName(domain) },
        { heading: 'State', cell: ({ state }) => stateOf(...DOMAIN_STATES[state]) },
        { heading: 'Phase', cell: ({ phase }) => (phase === undefined ? '–' : phaseState(phase)) },
        {
          heading: 'From',
          cell: ({ files }) =>
            el('span', { class: 'files' }, ...files.map((file) => el('span', {}, nameOf(file)))),
        },
      ],
    },
    domains,
  );
  return [table, more > 0 ? el('p', { class: 'note' }, `and ${countOf(more, 'more domain')}`) : undefined];
}

/** What to do where there is no domain. */
export function noDomain(): HTMLElement {
  return el(
    'div',
    { class: 'empty' },
    el('p', {}, el('strong', {}, 'No policy with a domain is in force, so weir limits nobody.')),
    el(
      'p',
      {},
      'Put a policy file where ',
      el('code', {}, 'CONFIG_PATH'),
      ' looks for it: weir reads it as soon as it is there. ',
      el('code', {}, 'weir init shop'),
      ' writes one to begin with, and docs/start.md and docs/policy/format.md of the manual say what stands in it.',
    ),
  );
}

/** Which policies are in force, when they were read, and what is wrong with the files. */
export function policyPart(policy: Overview['policy']): readonly Child[] {
  const { version, reload, errors, more_errors: more } = policy;
  const facts = el(
    'dl',
    { class: 'facts' },
    ...fact('Version', nameOf(version)),
    ...fact(
      'Read last',
      el(
        'span',
        {},
        relativeTime(reload.at),
        ' (',
        timeOf(reload.at),
        '): ',
        reload.result === 'ok' ? stateOf('good', 'all is good') : stateOf('bad', 'there are errors'),
      ),
    ),
  );
  if (errors.length === 0) return [facts];
  return [
    facts,
    el(
      'div',
      { class: 'problem' },
      el('h4', {}, 'What is wrong with the policies'),
      el('ul', {}, ...errors.map((text) => el('li', {}, sentence(text)))),
      more > 0
        ? el('p', {}, `and ${countOf(more, 'more error')}; weir check-config lists all of them`)
        : undefined,
    ),
  ];
}

/** A term and what is said of it, for a list of facts. */
export function fact(term: string, ...said: readonly Child[]): readonly [HTMLElement, HTMLElement] {
  return [el('dt', {}, term), el('dd', {}, ...said)];
}
