import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'

const isInstalled = (program: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some(directory => existsSync(join(directory, program)))

/** Why the tests with Prometheus cannot run; undefined: they can. Debian's package has both programs. */
export const missingPrometheus = ['promtool', 'prometheus'].every(isInstalled)
  ? undefined
  : 'Prometheus is missing; apt-get install prometheus'

/** Runs promtool and returns its exit code and everything that it printed. */
export const runPromtool = (
  args: readonly string[],
  { input = '', directory }: { readonly input?: string; readonly directory?: string } = {},
): Promise<{ readonly code: number | null; readonly output: string }> =>
  new Promise(resolve => {
    const child = execFile('promtool', args, { cwd: directory }, (_, stdout, stderr) => {
      resolve({ code: child.exitCode, output: stdout + stderr })
    })
    child.stdin?.end(input)
  })

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

/** The rules of a file in infra/monitoring. */
export const readRules = (file: string) =>
  rulesFile.parse(parse(readFile(`infra/monitoring/${file}`))).groups.flatMap(group => group.rules)

/** Every alert. */
export const readAlerts = () =>
  readRules('alerts.yaml').flatMap(({ alert, ...rule }) => (alert === undefined ? [] : [{ alert, ...rule }]))
