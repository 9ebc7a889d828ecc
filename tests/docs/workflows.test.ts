import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = globSync('{.,examples/*}/.github/{workflows,actions/*}/*.{yml,yaml}', { cwd: root })

interface Step {
  readonly uses?: string
  readonly with?: Readonly<Record<string, unknown>>
  readonly run?: string
}

interface Job {
  readonly uses?: string
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps?: readonly Step[]
}

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

const read = (file: string) => {
  const text = readFileSync(join(root, file), 'utf8')
  const workflow: Workflow = parse(text)
  return { text, workflow, jobs: Object.values(workflow.jobs) }
}
const canWrite = ({ permissions = {} }: Pick<Job, 'permissions'>): boolean =>
  Object.values(permissions).includes('write')

test('the workflows of this repository and of the examples are found', () => {
  expect(files).toEqual(
    expect.arrayContaining(['.github/workflows/release.yml', 'examples/ci/.github/workflows/test.yml']),
  )
})

test.each(files)('%s names each action by a commit, with its version', file => {
  const { text, jobs } = read(file)
  const used = jobs.flatMap(({ uses, steps = [] }) =>
    [uses, ...steps.map(step => step.uses)].filter(each => each !== undefined),
  )
  expect(used).not.toEqual([])
  for (const action of used) {
    expect(action).toMatch(/^[\w.-]+(?:\/[\w.-]+)+@[0-9a-f]{40}$/)
    expect(text).toMatch(new RegExp(`${action} # v\\d+\\.\\d+\\.\\d+\\n`))
  }
})

test.each(files)('%s leaves no token in a checkout, and may write in jobs that say so only', file => {
  const { workflow, jobs } = read(file)
  expect(workflow.permissions).toEqual({ contents: 'read' })
  const checkouts = jobs.flatMap(({ steps = [] }) => steps.filter(({ uses }) => uses?.startsWith('actions/checkout@')))
  expect(checkouts.filter(step => step.with?.['persist-credentials'] !== false)).toEqual([])
})

test.each(files)('%s runs programs of an exact version in a job that may write', file => {
  const commands = read(file)
    .jobs.filter(canWrite)
    .flatMap(({ steps = [] }) => steps.flatMap(({ run = '' }) => run))
  for (const [, program = ''] of commands.join('\n').matchAll(/\b(?:npx|pnpm dlx)(?: -\S+)* (\S+)/g)) {
    expect(program).toMatch(/^\S+@\d+\.\d+\.\d+$/)
  }
})
