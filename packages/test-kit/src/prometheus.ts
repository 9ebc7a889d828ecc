import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { findProgram, startServerAndWait } from '@pool/dev/server-process'
import * as z from 'zod'

const server = findProgram('prometheus')
const promtool = findProgram('promtool')

/** Why the tests with Prometheus cannot run; undefined: they can. Debian's package has both programs. */
export const missingPrometheus =
  server && promtool ? undefined : 'Prometheus is not installed, its tests are skipped: apt-get install prometheus'

/** Runs promtool and returns its exit code and everything that it printed. */
export const runPromtool = (
  args: readonly string[],
  { input = '', directory }: { readonly input?: string; readonly directory?: string } = {},
): Promise<{ readonly code: number | null; readonly output: string }> =>
  new Promise(resolve => {
    const child = execFile(promtool ?? 'promtool', args, { cwd: directory }, (_, stdout, stderr) => {
      resolve({ code: child.exitCode, output: stdout + stderr })
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })

export interface ScrapeJob {
  readonly name: string
  /** Host and port. */
  readonly targets: readonly string[]
  readonly token?: string
}

/** The labels and the values of one time series; a value belongs to a Unix time in seconds. */
export interface TimeSeries {
  readonly labels: Readonly<Record<string, string>>
  readonly values: readonly (readonly [at: number, value: number])[]
}

export interface Prometheus extends AsyncDisposable {
  readonly url: string
  /** The current values of a query. Rejects with the reason if Prometheus does not accept the query. */
  query(expr: string): Promise<readonly TimeSeries[]>
  /** The response of an endpoint of its API, such as `/api/v1/rules`. */
  get(path: string): Promise<unknown>
}

const sample = z.tuple([z.number(), z.string()]).transform(([at, value]) => [at, Number(value)] as const)
const queryResult = z.object({
  data: z.object({
    result: z.array(
      z.object({
        metric: z.record(z.string(), z.string()),
        value: sample.optional(),
        values: z.array(sample).optional(),
      }),
    ),
  }),
})

/** Scrapes and evaluates each second. JSON is YAML, so the configuration is written as JSON. */
const createConfig = (jobs: readonly ScrapeJob[], ruleFiles: readonly string[]) => ({
  global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
  rule_files: ruleFiles,
  scrape_configs: jobs.map(({ name, targets, token }) => ({
    job_name: name,
    ...(token === undefined ? {} : { authorization: { credentials: token } }),
    static_configs: [{ targets }],
  })),
})

/** A Prometheus on a loopback port, with an empty store that is removed at its end. */
export const startPrometheus = async (
  jobs: readonly ScrapeJob[],
  ruleFiles: readonly string[],
): Promise<Prometheus> => {
  if (!server) throw new Error(missingPrometheus)
  const folder = await mkdtemp(join(tmpdir(), 'pool-prometheus-'))
  await mkdir(join(folder, 'data'))
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(createConfig(jobs, ruleFiles)))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const stop = await startServerAndWait({
    name: 'Prometheus',
    command: [
      server,
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    folder,
    removeOnExit: folder,
    isUp: () =>
      fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
  })
  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(url + path)
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return JSON.parse(text)
  }
  const query = async (expr: string): Promise<TimeSeries[]> => {
    const { data } = queryResult.parse(await get(`/api/v1/query?${new URLSearchParams({ query: expr })}`))
    return data.result.map(({ metric, value, values }) => ({
      labels: metric,
      values: values ?? (value ? [value] : []),
    }))
  }
  return {
    url,
    get,
    query,
    [Symbol.asyncDispose]: stop,
  }
}
