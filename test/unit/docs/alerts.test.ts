/* Checks alerts and dashboards: severities, runbooks, and metrics that weir exports. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { describeMetrics } from '../../../.ci/docs/describe-metrics.js';
import { pageText } from '../../support/docs/pages.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { type Panel, shippedDashboards } from '../../support/prometheus/dashboard.js';
import { type AlertRule, metricsIn, RULES, shippedAlerts } from '../../support/prometheus/rule-tests.js';

const alerts = shippedAlerts();
const PAGES = 'docs/runbooks';

/** Names that a query may use: the metrics in the manual's table, and the series of histograms. */
const known = new Set(
  describeMetrics().flatMap(({ name, type }) =>
    type === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name],
  ),
);
const unknownIn = (query: string): readonly string[] =>
  metricsIn(query).filter((name) => !known.has(name) && !/^(?:process|nodejs)_/.test(name));

/** Returns the page name of an alert: `weir-store-down` for `WeirStoreDown`. */
const pageOf = (alert: string): string =>
  alert.replaceAll(/(?<!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase();

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
        runbook: `${PAGES}/${pageOf(alert)}.md`,
      });
      const page = pageText(annotations['runbook'] as string);
      expect(page.startsWith(`# ${alert}\n\nSeverity ${labels['severity']}: `)).toBe(true);
      expect([...page.matchAll(/^## (.*)$/gm)].map(([, title]) => title)).toEqual([
        'Impact',
        'Diagnose',
        'Fix',
        'When to ignore it',
      ]);
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

  test('have one runbook each', () => {
    const pages = readdirSync(join(repositoryRoot, PAGES)).sort();
    expect(pages).toEqual(alerts.map(({ alert }) => `${pageOf(alert)}.md`).sort());
  });

  test('have runbooks whose queries use existing metrics', () => {
    for (const name of [...readdirSync(join(repositoryRoot, PAGES)).map((one) => `${PAGES}/${one}`)]) {
      const blocks = [...pageText(name).matchAll(/^```promql\n(.*?)^```/gms)].map(([, text = '']) => text);
      expect([name, blocks.length]).toEqual([name, 1]);
      expect([name, blocks.flatMap(unknownIn)]).toEqual([name, []]);
    }
  });
});

describe.each([...shippedDashboards()])('the dashboard %s', (_file, dashboard) => {
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
    expect(hidden).toEqual([]);
  });
});
