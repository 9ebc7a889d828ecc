import type { Account } from './account.ts'
import type { TypeName } from './cloudflare-schema.ts'
import type { Resource } from './resource.ts'
import { scriptResource } from './script-resource.ts'
import { domainResource, namespaceResource, subdomainResource } from './small-resources.ts'

/** `directory` is where Terraform runs: the file of a script is named from there. */
export const resourcesOf = (account: Account, directory: string): Readonly<Record<TypeName, Resource>> => ({
  cloudflare_workers_kv_namespace: namespaceResource(account),
  cloudflare_workers_script: scriptResource(account, directory),
  cloudflare_workers_script_subdomain: subdomainResource(account),
  cloudflare_workers_custom_domain: domainResource(account),
})
