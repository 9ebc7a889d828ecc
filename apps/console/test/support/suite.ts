import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AllocationClient } from '@pool/client'
import { LeaseClient } from '@pool/client/leases'
import { findProgram } from '@pool/dev/server-process'
import { missingGateway, startGateway } from '@pool/test-kit/ceph/gateway.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { isProof } from '@pool/test-kit/proof-size.ts'
import { startAllocationApi, startWitness, type TestAllocationApi, type TestWitness } from '@pool/testing'
import type { Browser, Page } from 'playwright-core'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { buildConsole } from '../../scripts/build.ts'
import { launchChromium, missingChromium, openPage, signIn, type Visitor } from './browser.ts'
import { checkViews, DEFAULT_VIEW, type View } from './views.ts'

export const skipsBrowser = shouldSkip(missingChromium)
export const missingTerraform = findProgram('terraform')
  ? undefined
  : 'Terraform is not installed: install terraform 1.11, to create deployments from the console.'

/** Of the object storage. */
export const storageKeys = {
  accessKey: 'MARKACCESSKEY0123456',
  secretKey: 'mark-secret-key-0123456789abcdefghijklmnop',
}

/** A gateway starts slowly: only the proof has deployments with object storage. */
export const hasStorage = isProof && !shouldSkip(missingGateway)

/** Starts a gateway that accepts `storageKeys`. Resolves with the variables that make the API use it; none without it. */
const startStorage = async (cleanup: AsyncDisposableStack): Promise<Readonly<Record<string, string>>> => {
  if (!hasStorage) return {}
  const gateway = await startGateway({ names: ['*.storage.test'] })
  cleanup.defer(() => gateway.stop())
  await gateway.addUser(storageKeys)
  return {
    OBJECT_STORAGE_DOMAIN: `storage.test:${gateway.port}`,
    OBJECT_STORAGE_CA_FILE: gateway.caFile,
    NODE_OPTIONS: `--import=${import.meta.resolve('@pool/test-kit/ceph/storage-names.ts')}`,
  }
}

const buildTestConsole = async (cleanup: AsyncDisposableStack): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'console-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  await buildConsole(folder)
  return folder
}

/** The API that serves the console, with Postgres, a DNS server and a witness. */
export interface ConsoleStack {
  readonly api: TestAllocationApi
  readonly witness: TestWitness
  /** Of the operator, with the token: the same API that the console uses. */
  readonly client: AllocationClient
  readonly leases: LeaseClient
  readonly sql: postgres.Sql
}

const startStack = async (
  cleanup: AsyncDisposableStack,
  { env, pools = ['pool.test'] }: Pick<SuiteOptions, 'env' | 'pools'>,
): Promise<ConsoleStack> => {
  const [folder, witness] = await Promise.all([buildTestConsole(cleanup), startWitness()])
  cleanup.use(witness)
  const variables = {
    PDM_TEST_SETTINGS: JSON.stringify({ publicPools: true, consoleFolder: folder }),
    PDM_WITNESS_URL: witness.url,
    PDM_WITNESS_TOKEN: witness.token,
    PDM_NAME_COOL_OFF: '1h',
    ...env,
  }
  const api = cleanup.use(await startAllocationApi({ pools, env: variables }))
  const sql = postgres(api.databaseUrl, { max: 2, onnotice: () => undefined })
  cleanup.defer(() => sql.end({ timeout: 1 }))
  const client = new AllocationClient({ baseUrl: api.operatorUrl, token: api.operatorToken })
  return { api, witness, client, leases: new LeaseClient({ baseUrl: witness.url, token: witness.token }), sql }
}

/** One stack, one browser and one page, which is signed in, for the tests of a file. */
export class ConsoleSuite {
  readonly cleanup = new AsyncDisposableStack()
  readonly #views: readonly View[]
  readonly #hostname: string
  stack!: ConsoleStack
  browser!: Browser
  visitor!: Visitor

  constructor({ views = [DEFAULT_VIEW], hostname = '127.0.0.1' }: SuiteOptions) {
    this.#views = views
    this.#hostname = hostname
  }

  get page(): Page {
    return this.visitor.page
  }

  /** Where the console is served, without a path. */
  get origin(): string {
    return Object.assign(new URL(this.stack.api.operatorUrl), { hostname: this.#hostname }).origin
  }

  async start(options: SuiteOptions): Promise<void> {
    this.stack = await startStack(this.cleanup, options)
    this.browser = await launchChromium(this.#hostname)
    this.cleanup.defer(() => this.browser.close())
    this.visitor = await openPage(this.browser, this.origin)
    await this.signIn()
  }

  async signIn(): Promise<void> {
    await signIn(this.page, this.origin, this.stack.api.operatorToken)
  }

  /** Loads a page of the console. */
  async open(path: string): Promise<void> {
    await this.page.goto(`${this.origin}/console${path}`)
  }

  /** Presses a button of the page. */
  press = async (name: string): Promise<void> => {
    await this.page.getByRole('button', { name, exact: true }).first().click()
  }

  seeText = async (text: string | RegExp): Promise<void> => {
    await this.page.getByText(text).first().waitFor()
  }

  /** What the page says has been done. */
  async seeDone(text: string | RegExp): Promise<void> {
    await this.page.locator('.toasts').getByText(text).first().waitFor()
  }

  /** Whoever sees the page in this state can read and use it. */
  async check(state: string): Promise<void> {
    await checkViews(this.page, state, this.#views)
  }
}

interface SuiteOptions {
  readonly pools?: readonly string[]
  /** Where the browser finds the console. It resolves to this machine. */
  readonly hostname?: string
  readonly env?: Readonly<Record<string, string>>
  /** Writes what the pages show. */
  readonly prepare: (suite: ConsoleSuite) => Promise<void>
  /** In which each state is checked. */
  readonly views?: readonly View[]
}

/** Starts the suite before the tests of a file, and stops it afterwards. A test that makes the page report a fault fails. */
export const useConsoleSuite = (options: SuiteOptions): ConsoleSuite => {
  const suite = new ConsoleSuite(options)
  beforeAll(async () => {
    if (skipsBrowser) return
    const storage = await startStorage(suite.cleanup)
    await suite.start({ ...options, env: { ...storage, ...options.env } })
    await options.prepare(suite)
  })
  afterEach(async () => {
    if (skipsBrowser) return
    await suite.page.unrouteAll({ behavior: 'ignoreErrors' })
    expect(suite.visitor.faults.splice(0)).toEqual([])
  })
  afterAll(() => suite.cleanup.disposeAsync())
  return suite
}
