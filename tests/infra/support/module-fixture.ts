import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProviders } from '@pool/test-kit/terraform/provider.ts'
import type { Provider } from '@pool/test-kit/terraform/resource.ts'
import { expect, onTestFinished } from 'vitest'
import { type CommandResult, run } from './terraform.ts'

/** The part of `terraform show -json` that the tests use. */
export interface Plan {
  readonly configuration: {
    root_module: { variables: Record<string, { sensitive?: boolean }> }
    provider_config: Record<string, { version_constraint?: string; expressions: Record<string, unknown> }>
  }
  readonly resource_changes: readonly {
    address: string
    change: { actions: string[]; before: unknown; after: Record<string, unknown>; after_unknown: unknown }
  }[]
}

/** The paths of changed attributes. Values that are unknown until apply, such as the time of an upload, are omitted. */
export const changedPaths = ({ resource_changes }: Plan): string[] =>
  resource_changes.flatMap(({ address, change }) =>
    findDifferences(change.before, change.after, change.after_unknown, address),
  )

function findDifferences(before: unknown, after: unknown, unknown: unknown, path: string): string[] {
  if (unknown === true) return []
  if (!isRecord(before) || !isRecord(after)) return before === after ? [] : [path]
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.flatMap(name =>
    findDifferences(before[name], after[name], isRecord(unknown) ? unknown[name] : undefined, `${path}.${name}`),
  )
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

export const repository = fileURLToPath(new URL('../../../', import.meta.url))

/** Every secret of a test contains this mark, so that a leaked secret is found in the output. */
export const SECRET_MARK = 'NEVER-LEAK'

export type Variables = Record<string, unknown>

export interface ModuleFixture {
  /** Temporary directory with the copies, at the same paths as in the repository. */
  readonly root: string
  /** Working directory of the commands. */
  readonly directory: string
  /** Environment variables of the next commands, in addition to PATH. */
  readonly environment: Record<string, string>
  terraform(...args: string[]): Promise<CommandResult>
  /** Writes the variables of the next commands. */
  set(variables: Variables): void
  /** Runs an apply, which must succeed, and returns its output. */
  apply(): Promise<string>
  /** Unlike the output of `terraform plan`, the result contains the secrets. */
  plan(): Promise<Plan>
  outputs(): Promise<Record<string, unknown>>
}

interface Options {
  /** Folders of the repository to copy. The commands run in the first one, unless there is a `rootModule`. */
  readonly folders: readonly [string, ...string[]]
  /** Configuration that calls the modules. */
  readonly rootModule?: string | undefined
  readonly variables?: Variables
  provider?(directory: string): Provider
  /** Besides `provider`. */
  readonly moreProviders?: readonly Provider[]
  /** Starts what the commands use, and returns more variables, which replace those of the fixture. */
  startEnvironment?(directory: string): Promise<Readonly<Record<string, string>>>
  /** More variables of all commands, which replace those of the fixture. */
  readonly environment?: Readonly<Record<string, string>>
  change?(moduleDirectory: string): void
}

/** Copies modules, with their own provider, state and data directory, and runs `terraform init`. */
export async function createModuleFixture({
  folders,
  rootModule,
  variables = {},
  provider,
  moreProviders = [],
  startEnvironment,
  environment: moreEnvironment = {},
  change,
}: Options): Promise<ModuleFixture> {
  const root = mkdtempSync(join(tmpdir(), 'infra-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  for (const folder of folders) {
    mkdirSync(dirname(join(root, folder)), { recursive: true })
    cpSync(join(repository, folder), join(root, folder), {
      recursive: true,
      filter: source => !/\/\.terraform|\.tfstate/.test(source),
    })
  }
  const moduleDirectory = join(root, folders[0])
  change?.(moduleDirectory)
  const directory = rootModule === undefined ? moduleDirectory : root
  if (rootModule !== undefined) writeFileSync(join(root, 'main.tf'), rootModule)
  const environment: Record<string, string> = { HOME: root, TF_DATA_DIR: join(root, 'data'), ...moreEnvironment }
  if (provider) {
    const { reattach, stop } = await startProviders(provider(directory), ...moreProviders)
    onTestFinished(stop)
    environment.TF_REATTACH_PROVIDERS = reattach
  }

  if (startEnvironment) Object.assign(environment, await startEnvironment(directory))

  const terraform = async (...args: string[]): Promise<CommandResult> => {
    const outcome = await run(directory, args, environment)
    expect(outcome.output, `the output of terraform ${args[0]} has a secret`).not.toContain(SECRET_MARK)
    return outcome
  }
  const set = (values: Variables): void =>
    writeFileSync(join(directory, 'terraform.tfvars.json'), JSON.stringify(values, null, 2))

  set(variables)
  const init = await terraform('init', '-no-color')
  expect(init.code, init.output).toBe(0)

  return {
    root,
    directory,
    environment,
    terraform,
    set,
    async apply() {
      const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
      expect(code, output).toBe(0)
      return output
    },
    async plan() {
      const { code, output } = await terraform('plan', '-no-color', '-out=plan.bin')
      expect(code, output).toBe(0)
      return JSON.parse((await run(directory, ['show', '-json', 'plan.bin'], environment)).output) as Plan
    },
    async outputs() {
      const { output } = await terraform('output', '-json')
      const entries = Object.entries(JSON.parse(output) as Record<string, { value: unknown }>)
      return Object.fromEntries(entries.map(([name, { value }]) => [name, value]))
    },
  }
}

export const readState = (directory: string): string => readFileSync(join(directory, 'terraform.tfstate'), 'utf8')

/** Terraform wraps its output at the width of a terminal. */
export const collapseWhitespace = (text: string): string => text.replaceAll(/\s+/g, ' ')

/** Replaces a text in a copied file. Throws if the file does not contain it. */
export function replaceInFile(file: string, from: string, to: string): void {
  const text = readFileSync(file, 'utf8')
  if (!text.includes(from)) throw new Error(`${file} does not contain ${from}`)
  writeFileSync(file, text.replace(from, to))
}
