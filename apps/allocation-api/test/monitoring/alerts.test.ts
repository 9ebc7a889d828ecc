import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { listMetrics, parseMetricsTable, readAlerts, readRules } from '../support/monitoring.ts'

const read = (path: string): string => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')

const testsFile = z.object({
  tests: z.array(
    z.object({
      name: z.string(),
      promql_expr_test: z.array(z.object({ expr: z.string(), exp_samples: z.array(z.unknown()) })),
    }),
  ),
})

const alerts = readAlerts()
const { tests } = testsFile.parse(parse(read('infra/monitoring/alerts.test.yaml')))

const toKebabCase = (name: string): string => name.replaceAll(/(?<!^)([A-Z])/g, '-$1').toLowerCase()

test.each(alerts)('$alert has a severity, a reason for its threshold, and the runbook of its name', rule => {
  expect(rule.labels).toBeDefined()
  expect(rule.annotations).toBeDefined()
  expect(rule.annotations?.runbook_url).toBe(`docs/runbooks/${toKebabCase(rule.alert)}.md`)
})

test.each(alerts)('$alert has a case in which it fires and one in which it does not', ({ alert }) => {
  const hasSamples = (name: string) =>
    tests
      .filter(cases => cases.name === name)
      .flatMap(({ promql_expr_test: queries }) => queries)
      .filter(({ expr }) => expr === `ALERTS{alertname="${alert}", alertstate="firing"}`)
      .map(({ exp_samples: samples }) => samples.length > 0)
  expect(hasSamples(`${alert} fires`)).toEqual([true])
  expect(hasSamples(`${alert} does not fire`)).toEqual([false])
})

test('a rule aggregates over the replicas, unless it is about one of them', () => {
  const ofOneReplica = [
    'AllocationApiReplicaDown',
    'AllocationApiEventLoopSaturated',
    'AllocationApiDeploymentsDiskFull',
    'AllocationApiNotReady',
  ]
  const others = alerts.filter(({ expr }) => !/\b(?:max|sum|count) by \(|^job:/.test(expr)).map(({ alert }) => alert)
  expect(others.filter(alert => !ofOneReplica.includes(alert))).toEqual([])
})

test('docs/reference/metrics.md has every metric of the rules, and the alerts that use it', () => {
  const recorded = new Map(readRules('recording-rules.yaml').map(({ record, expr }) => [record, expr]))
  const expand = (expr: string): string[] => {
    const inner = expr.match(/\b\w+:\w+:\w+/g) ?? []
    return [...listMetrics(expr), ...inner.flatMap(name => expand(recorded.get(name) ?? ''))]
  }
  const used = alerts.flatMap(({ alert, expr }) => [...new Set(expand(expr))].map(name => `${name} ${alert}`))
  const documented = parseMetricsTable().flatMap(({ name, alerts: names }) => names.map(alert => `${name} ${alert}`))
  expect(documented.toSorted()).toEqual(used.toSorted())
})
