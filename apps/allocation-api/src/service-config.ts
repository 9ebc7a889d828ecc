import type { ConfigIssue, Env } from '@pool/runtime/service/env'
import { readEnvironment } from '@pool/runtime/service/read-environment'
import { type Config, readConfig } from './config/config.ts'
import { knownVariables, SECRET_VARIABLES } from './config/variables.ts'
import { readCaFile } from './credentials/ca-file.ts'
import { type ChosenProvider, readProvider } from './dns/registry.ts'

export interface ServiceConfig extends Config {
  readonly dnsProvider: ChosenProvider
  /** PEM of additional authorities for the certificate of the object storage; null: the system's only. */
  readonly objectStorageCa: string | null
  /** What Terraform may inherit. */
  readonly env: Env
}

/** Domains that are never delegated in the public DNS (RFC 6761). */
const PRIVATE_DOMAIN = /(?:^|\.)(?:test|localhost|example|invalid)$/

/** The records of the built-in server are not in the public DNS. */
const validateLocalPools = ({ managedDomains, dns }: Config, kind: string): readonly ConfigIssue[] => {
  const pool = managedDomains.find(domain => !PRIVATE_DOMAIN.test(domain))
  if (kind !== 'local' || dns.acceptsAnyLocalDomain || pool === undefined) return []
  const detail = `is local, which publishes ${pool} on this machine only; choose the provider of the pools in DNSPROVIDER_MANAGED_DOMAINS, or set DNSPROVIDER_LOCAL_ANY_DOMAIN=true`
  return [{ variable: 'DNSPROVIDER_KIND', detail }]
}

/** The whole configuration, or every error in it. */
export const readServiceConfig = (
  variables: Env,
): { readonly config: ServiceConfig } | { readonly issues: readonly ConfigIssue[] } =>
  readEnvironment(variables, { known: knownVariables, secrets: SECRET_VARIABLES }, (env, values) => {
    const variable = 'OBJECT_STORAGE_CA_FILE'
    const service = readConfig(values)
    const dns = readProvider(values)
    const authorities = readCaFile(variable, env.text(variable) ?? null)
    if ('config' in service && 'provider' in dns && 'ca' in authorities) {
      env.issues.push(...validateLocalPools(service.config, dns.provider.kind))
      return { ...service.config, dnsProvider: dns.provider, objectStorageCa: authorities.ca, env: values }
    }
    for (const result of [service, dns, authorities]) if ('issues' in result) env.issues.push(...result.issues)
    return null
  })
