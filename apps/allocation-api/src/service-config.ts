import { type ConfigIssue, type Env, EnvReader } from '@pool/node-service/env'
import { mergeIssues, readSecretFiles } from '@pool/node-service/secret-files'
import { type Config, readConfig } from './config/config.ts'
import { SECRET_VARIABLES } from './config/variables.ts'
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
export const readServiceConfig = (variables: Env): { config: ServiceConfig } | { issues: readonly ConfigIssue[] } => {
  const { env, issues: fileIssues } = readSecretFiles(variables, SECRET_VARIABLES)
  const variable = 'OBJECT_STORAGE_CA_FILE'
  const service = readConfig(env)
  const dns = readProvider(env)
  const authorities = readCaFile(variable, new EnvReader(env).text(variable) ?? null)
  if ('config' in service && 'provider' in dns && 'ca' in authorities && fileIssues.length === 0) {
    const issues = validateLocalPools(service.config, dns.provider.kind)
    if (issues.length > 0) return { issues }
    return { config: { ...service.config, dnsProvider: dns.provider, objectStorageCa: authorities.ca, env } }
  }
  const issues = [service, dns, authorities].flatMap(result => ('issues' in result ? result.issues : []))
  return { issues: mergeIssues(fileIssues, issues) }
}
