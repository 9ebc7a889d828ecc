import { startProvider } from '@pool/test-kit/terraform/provider.ts'
import { findProviderEnvironment, usesRealProviders } from '@pool/test-kit/terraform/real-providers.ts'
import type { Account } from './account.ts'
import { cloudflare } from './cloudflare.ts'
import { type CloudflareApi, startCloudflareApi } from './cloudflare-api.ts'

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
