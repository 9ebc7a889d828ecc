import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import * as z from 'zod'

export interface DocumentedMetric {
  readonly name: string
  readonly labels: readonly string[]
  readonly type: string
  /** The full names of the alerts that use it. */
  readonly alerts: readonly string[]
}

const readFile = (path: string): string => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')

/** The rows of docs/reference/metrics.md. */
export const parseMetricsTable = (): DocumentedMetric[] =>
  Array.from(
    readFile('docs/reference/metrics.md').matchAll(/^\| `(\w+)(?:\{([\w,]+)\})?` \| (\w+) \|.*\|([^|]*)\|$/gm),
    ([, name = '', labels = '', type = '', alerts = '']) => ({
      name,
      labels: labels.split(',').filter(label => label !== ''),
      type,
      alerts: Array.from(
        alerts.matchAll(/`(\w+)`/g),
        ([, alert]) => `${name.startsWith('pdm_') ? 'AllocationApi' : 'LeaseWitness'}${alert}`,
      ),
    }),
  )

const rulesFile = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string().optional(),
          record: z.string().optional(),
          expr: z.string(),
          labels: z.object({ severity: z.enum(['critical', 'warning']) }).optional(),
          annotations: z.object({ summary: z.string(), threshold: z.string(), runbook_url: z.string() }).optional(),
        }),
      ),
    }),
  ),
})

/** The rules of a file in infra/chart/files. */
export const readRules = (file: string) =>
  rulesFile.parse(parse(readFile(`infra/chart/files/${file}`))).groups.flatMap(group => group.rules)

/** Every alert. */
export const readAlerts = () =>
  readRules('alerts.yaml').flatMap(({ alert, ...rule }) => (alert === undefined ? [] : [{ alert, ...rule }]))

/** The metrics of the services in an expression, without those of recorded series and without suffixes of histograms. */
export const listMetrics = (expr: string): string[] => {
  const names = expr.replaceAll(/\w+:\w+:\w+/g, '').match(/\b(?:pdm|lease_witness)_\w+/g) ?? []
  return [...new Set(names.map(name => name.replace(/_(?:bucket|count|sum)$/, '')))]
}
