import type { Overview, OverviewDomain, OverviewNode, OverviewWorker } from '../../admin/page/messages.js';
import { type Child, el } from '../dom/element.js';
import { tableOf } from '../dom/table.js';
import { expandableName, nameOf, relativeTime, sentence, stateOf, timeOf } from '../dom/texts.js';
import { type PhaseSwitch, phaseWord, switchWords } from '../text/limit-words.js';
import { countOf, millisecondsText } from '../text/numbers.js';
import { spanText } from '../text/times.js';

/** Shows a phase as a sign and a word. */
export function phaseState(phase: string): HTMLElement {
  return stateOf(phase === 'active' ? 'good' : 'watch', phaseWord(phase));
}

/** Shows a future change of phase: its time, and the time until then. */
export function switchElement(one: PhaseSwitch): HTMLElement {
  return el('span', {}, `${switchWords(one)}, `, relativeTime(one.at));
}

/** Shows the store and its servers. */
export function storePart({ name, up, nodes }: Overview['store']): readonly Child[] {
  const state = up ? stateOf('good', 'up') : stateOf('bad', 'unavailable');
  const head = el('p', {}, 'Buckets are stored in ', nameOf(name), ': ', state);
  if (nodes.length === 0) {
    return [
      head,
      el(
        'p',
        { class: 'note' },
        'With the memory store, each replica counts separately, and loses its buckets when it exits.',
      ),
    ];
  }
  return [
    head,
    tableOf<OverviewNode>(
      {
        caption: 'Store servers',
        columns: [
          { heading: 'Server', cell: ({ node }) => nameOf(node) },
          { heading: 'State', cell: nodeState },
          {
            heading: 'Latency',
            figures: true,
            cell: latencyCell,
          },
          {
            heading: 'Used for',
            cell: ({ redis }) => (redis === 'main' ? 'all limits' : 'per-second limits'),
          },
        ],
      },
      nodes,
    ),
  ];
}

/** The latency of an unavailable server is out of date. */
function latencyCell({ up, latency_ms: latency }: OverviewNode): string {
  if (up === 0) return '–';
  return latency === null ? 'no answer yet' : millisecondsText(latency);
}

function nodeState({ up, of, reason }: OverviewNode): readonly Child[] {
  const processes = of === 1 ? '' : ` for ${up} of ${countOf(of, 'process', 'processes')}`;
  if (up === of) return [stateOf('good', `up${processes}`)];
  const why = reason === undefined ? 'circuit breaker open' : `circuit breaker open: ${reason}`;
  return [
    stateOf('bad', up === 0 ? 'unavailable' : `up${processes}`),
    el('span', { class: 'why' }, ` ${why}`),
  ];
}

/** Shows the worker processes. */
export function workersPart(workers: readonly OverviewWorker[]): readonly Child[] {
  if (workers.length === 0)
    return [el('p', { class: 'note' }, 'WORKERS is 1, so a single process decides all requests.')];
  return [
    tableOf<OverviewWorker>(
      {
        caption: 'Worker processes',
        columns: [
          { heading: 'Worker', cell: ({ id }) => String(id) },
          {
            heading: 'State',
            cell: ({ status, silent_seconds: silent, policy }) => [
              silent === undefined
                ? stateOf(
                    status === 'SERVING' ? 'good' : 'bad',
                    status === 'SERVING' ? 'serving' : 'not serving',
                  )
                : stateOf('bad', `has not answered for ${spanText(silent)}`),
              ...(policy === undefined ? [] : [stateOf('bad', `has other policies (${policy})`)]),
            ],
          },
          {
            heading: 'Store',
            cell: ({ store_up: up }) => stateOf(up ? 'good' : 'bad', up ? 'up' : 'unavailable'),
          },
          { heading: 'Process', figures: true, cell: ({ pid }) => String(pid) },
        ],
      },
      workers,
    ),
  ];
}

const DOMAIN_STATES: Readonly<Record<OverviewDomain['state'], Parameters<typeof stateOf>>> = {
  ok: ['good', 'in sync'],
  kept: ['bad', 'invalid files; the previous version is in effect'],
  absent: ['bad', 'invalid files; not in effect'],
};

/** Shows the domains and their states. */
export function domainsPart({ domains, more_domains: more }: Overview['policy']): readonly Child[] {
  if (domains.length === 0) return [noDomain()];
  const table = tableOf<OverviewDomain>(
    {
      caption: 'Domains',
      columns: [
        { heading: 'Domain', cell: ({ domain }) => expandableName(domain) },
        { heading: 'State', cell: ({ state }) => stateOf(...DOMAIN_STATES[state]) },
        { heading: 'Phase', cell: ({ phase }) => (phase === undefined ? '–' : phaseState(phase)) },
        {
          heading: 'Files',
          cell: ({ files }) =>
            el('span', { class: 'files' }, ...files.map((file) => el('span', {}, nameOf(file)))),
        },
      ],
    },
    domains,
  );
  return [
    table,
    more > 0 ? el('p', { class: 'note' }, `${countOf(more, 'more domain')} not listed`) : undefined,
  ];
}

/** Explains what to do if there are no domains. */
export function noDomain(): HTMLElement {
  return el(
    'div',
    { class: 'empty' },
    el('p', {}, el('strong', {}, 'No policy is in effect, so weir does not limit any requests.')),
    el(
      'p',
      {},
      'Add a policy file to ',
      el('code', {}, 'CONFIG_PATH'),
      '. weir loads the file immediately. To create an example, run ',
      el('code', {}, 'weir init shop'),
      '. For the format, see docs/start.md and docs/policy/format.md.',
    ),
  );
}

/** Shows the version of the policies, the time of the last load, and errors. */
export function policyPart(policy: Overview['policy']): readonly Child[] {
  const { version, reload, errors, more_errors: more } = policy;
  const facts = el(
    'dl',
    { class: 'facts' },
    ...fact('Version', nameOf(version)),
    ...fact(
      'Last loaded',
      el(
        'span',
        {},
        relativeTime(reload.at),
        ' (',
        timeOf(reload.at),
        '): ',
        reload.result === 'ok' ? stateOf('good', 'no errors') : stateOf('bad', 'errors'),
      ),
    ),
  );
  if (errors.length === 0) return [facts];
  return [
    facts,
    el(
      'div',
      { class: 'problem' },
      el('h4', {}, 'Policy errors'),
      el('ul', {}, ...errors.map((text) => el('li', {}, sentence(text)))),
      more > 0
        ? el('p', {}, `${countOf(more, 'more error')} not listed. Run weir check-config to see all errors.`)
        : undefined,
    ),
  ];
}

/** Returns a term and its description, for a description list. */
export function fact(term: string, ...said: readonly Child[]): readonly [HTMLElement, HTMLElement] {
  return [el('dt', {}, term), el('dd', {}, ...said)];
}
