import { expect, test } from 'vitest'
import { alertCases } from '../support/alert-cases.ts'
import { listMetrics, parseMetricsTable, readAlerts, readRules } from '../support/monitoring.ts'

const alerts = readAlerts()

const toKebabCase = (name: string): string => name.replaceAll(/(?<!^)([A-Z])/g, '-$1').toLowerCase()

test.each(alerts)('$alert has a severity, a reason for its threshold, and the runbook of its name', rule => {
  expect(rule.labels).toBeDefined()
  expect(rule.annotations).toBeDefined()
  expect(rule.annotations?.runbook_url).toBe(`docs/runbooks/${toKebabCase(rule.alert)}.md`)
})

test('each alert has a case in which it fires and one in which it does not', () => {
  expect([...new Set(alertCases.map(({ alert }) => alert))].toSorted()).toEqual(
    alerts.map(({ alert }) => alert).toSorted(),
  )
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
