/* Checks alerts and dashboards: severities, runbooks, and metrics that weir exports. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { describeMetrics } from '../../../.ci/docs/describe-metrics.js';
import { pageText } from '../../support/docs/pages.js';
import { type Panel, shippedDashboards } from '../../support/prometheus/dashboard.js';
import { type AlertRule, metricsIn, RULES, shippedAlerts } from '../../support/prometheus/rule-tests.js';

const alerts = shippedAlerts();
const PAGE = 'docs/runbooks.md';

/** Names that a query may use: the metrics in the manual's table, and the series of histograms. */
const known = new Set(
  describeMetrics().flatMap(({ name, type }) =>
    type === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name],
  ),
);
const unknownIn = (query: string): readonly string[] =>
  metricsIn(query).filter((name) => !known.has(name) && !/^(?:process|nodejs)_/.test(name));

/** The sections of the page of alerts, by name. */
const sections = new Map(
  pageText(PAGE)
    .split(/^### /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section] as const),
);

test("the manual's table lists all metrics that queries may use", () => {
  const page = pageText('docs/reference/metrics.md');
  for (const { name } of describeMetrics()) expect(page).toContain(`| \`${name}\` |`);
});

describe('the alerts', () => {
  test('have unique names', () => {
    const names = alerts.map(({ alert }) => alert);
    expect(names.length).toBeGreaterThan(25);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(alerts.map((rule) => [rule.alert, rule] as const))(
    '%s has a severity, a duration, texts and a runbook',
    (alert: string, rule: AlertRule) => {
      const { labels, annotations } = rule;
      expect(alert).toMatch(/^Weir[A-Z]\w+$/);
      expect(['critical', 'warning', 'info']).toContain(labels['severity']);
      expect(rule.for).toMatch(/^\d+[mh]$/);
      expect(annotations).toEqual({
        summary: expect.stringMatching(/\S/),
        description: expect.stringMatching(/\.$/),
        runbook: `${PAGE}#${alert.toLowerCase()}`,
      });
      const severity = `${labels['severity']}`;
      expect(sections.get(alert)).toContain(`\n\n**${severity[0]?.toUpperCase()}${severity.slice(1)}.** `);
      expect(unknownIn(rule.expr)).toEqual([]);
    },
  );

  test('have a comment with the reason for the threshold', () => {
    const lines = readFileSync(RULES, 'utf8').split('\n');
    const uncommented = lines.filter(
      (line, at) => /^ +- alert:/.test(line) && !/^ +# /.test(lines[at - 1] ?? ''),
    );
    expect(uncommented).toEqual([]);
  });

  test('have one section each', () => {
    expect([...sections.keys()].sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  });

  test('have queries of existing metrics in their sections', () => {
    const blocks = [...pageText(PAGE).matchAll(/^```promql\n(.*?)^```/gms)].map(([, text = '']) => text);
    expect(blocks.length).toBeGreaterThan(10);
    expect(blocks.flatMap(unknownIn)).toEqual([]);
  });
});

describe.each([...shippedDashboards()])('the dashboard %s', (file, dashboard) => {
  const panels = dashboard.panels.filter(({ type }) => type !== 'row');
  const all = (panel: Panel) => panel.targets ?? [];

  test('has rows, and variables that select everything by default', () => {
    expect(dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title)).toEqual([
      'Overview',
      'By rule',
      'Holds',
      'Plans',
      'Store',
      'Process',
    ]);
    const [source, ...variables] = dashboard.templating.list;
    expect(source).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
    expect(variables.map(({ name }) => name)).toEqual(['namespace', 'domain', 'rule']);
    // `.*` also matches series without the label.
    for (const variable of variables)
      expect(variable).toMatchObject({
        type: 'query',
        multi: true,
        includeAll: true,
        allValue: '.*',
        current: { value: ['$__all'] },
        datasource: { uid: '$' + '{datasource}' },
      });
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(38);
  });

  test.each(panels.map((panel) => [panel.title, panel] as const))(
    '%s has a description, a unit and queries of existing metrics',
    (_title, panel) => {
      expect(panel.description).toMatch(/\.$/);
      expect(panel.fieldConfig?.defaults.unit).toMatch(/\S/);
      expect(all(panel).length).toBeGreaterThan(0);
      for (const { expr, legendFormat, datasource } of all(panel)) {
        expect(legendFormat).toMatch(/\S/);
        expect(datasource).toEqual({ type: 'prometheus', uid: '$' + '{datasource}' });
        expect(expr).toContain('namespace=~"$namespace"');
        expect(unknownIn(expr)).toEqual([]);
      }
    },
  );

  test('has panels with unique ids that do not overlap', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    const taken = new Set<string>();
    for (const { title, gridPos } of dashboard.panels) {
      const { x, y, w, h } = gridPos;
      expect([title, x + w <= 24]).toEqual([title, true]);
      for (let column = x; column < x + w; column++) {
        for (let line = y; line < y + h; line++) {
          expect([title, taken.has(`${column} ${line}`)]).toEqual([title, false]);
          taken.add(`${column} ${line}`);
        }
      }
    }
  });

  test('shows every metric that weir exports', () => {
    const shown = new Set(panels.flatMap((panel) => all(panel).flatMap(({ expr }) => metricsIn(expr))));
    const hidden = describeMetrics()
      .map(({ name }) => name)
      .filter((name) => !shown.has(name) && !shown.has(`${name}_bucket`));
    expect(hidden.map((name) => `${name}: add it to a panel of deploy/grafana/${file}`)).toEqual([]);
  });
});
