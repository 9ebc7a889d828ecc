import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { startProvider } from '@pool/test-kit/terraform/provider.ts'
import {
  findProviderEnvironment,
  selectProviderVersion,
  usesRealProviders,
} from '@pool/test-kit/terraform/real-providers.ts'
import { expect, onTestFinished } from 'vitest'
import { Account } from './account.ts'
import { cloudflare } from './cloudflare.ts'
import { type CloudflareApi, startCloudflareApi } from './cloudflare-api.ts'
import { createModuleFixture, type ModuleFixture, SECRET_MARK, type Variables } from './module-fixture.ts'

/** The provider of the witness module for an account: the double, or with REAL_PROVIDERS=1 the real one and a double of the API. */
export interface WitnessProvider {
  /** The variables by which Terraform finds the provider, and the provider the API. */
  readonly environment: Readonly<Record<string, string>>
  /** Null for the double of the provider. */
  readonly api: CloudflareApi | null
  stop(): void
}

/** A token of the form that the provider requires. */
const TOKEN = 'token-of-the-double'.padEnd(40, '0')

/** `directory` is the working directory of Terraform. With the real provider, the token may access `accounts`, by id. */
export async function startWitnessProvider(
  account: Account,
  directory: string,
  accounts: ReadonlyMap<string, Account>,
): Promise<WitnessProvider> {
  if (!usesRealProviders) {
    const { reattach, stop } = await startProvider(cloudflare(account, directory))
    return { environment: { TF_REATTACH_PROVIDERS: reattach }, api: null, stop }
  }
  const api = await startCloudflareApi({ accounts, token: TOKEN })
  const environment = { ...findProviderEnvironment(), CLOUDFLARE_BASE_URL: api.url, CLOUDFLARE_API_TOKEN: TOKEN }
  return { environment, api, stop: api.stop }
}

export const token = (name: string): string => `${SECRET_MARK}-${name}-`.padEnd(40, 'x')

/** The value of `token` in a policy. */
export const hashToken = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`

export const accountId = 'acc0'.repeat(8)
export const otherAccountId = '0ace'.repeat(8)
/** That of the examples in the README. */
const exampleAccountId = '0123456789abcdef'.repeat(2)
export const zoneId = '20e0'.repeat(8)

const defaultVariables: Variables = {
  account_id: accountId,
  script_file: 'built.js',
  token_policies: { one: { token: hashToken(token('one')), access: 'write' } },
}

export interface WitnessFixture extends ModuleFixture {
  readonly account: Account
  /** The requests of the real provider; empty for the double. */
  readonly requests: readonly string[]
  /** Overrides the default variables. An undefined value removes a variable. */
  set(variables: Variables): void
  build(text: string): void
}

interface Options {
  /** Configuration that calls the module. Default: the commands run in the module. */
  readonly rootModule?: string
  /** Default: a new account. */
  readonly account?: Account
  change?(moduleDirectory: string): void
}

/** The lease-witness module with its own Cloudflare account and a built script. */
export async function createWitnessFixture({
  rootModule,
  account = new Account(),
  change,
}: Options = {}): Promise<WitnessFixture> {
  const defaults = rootModule === undefined ? defaultVariables : {}
  let requests: readonly string[] = []
  const startAccount = async (directory: string) => {
    const accounts = new Map([
      [accountId, account],
      [exampleAccountId, account],
      [otherAccountId, new Account()],
    ])
    const { environment, api, stop } = await startWitnessProvider(account, directory, accounts)
    onTestFinished(() => {
      stop()
      expect(api?.unknown ?? []).toEqual([])
    })
    requests = api?.requests ?? []
    return environment
  }
  const fixture = await createModuleFixture({
    folders: ['infra/lease-witness'],
    rootModule,
    variables: defaults,
    startEnvironment: startAccount,
    change(directory) {
      if (usesRealProviders) selectProviderVersion(join(directory, 'versions.tf'))
      change?.(directory)
    },
  })
  const built = join(
    fixture.root,
    rootModule === undefined ? 'infra/lease-witness/built.js' : 'apps/lease-witness/dist/index.js',
  )
  mkdirSync(dirname(built), { recursive: true })
  const build = (text: string): void => writeFileSync(built, text)
  build('// first\n')
  return { ...fixture, account, requests, build, set: variables => fixture.set({ ...defaults, ...variables }) }
}
