import type { Account } from './account.ts'
import { cloudflareProvider, customDomain, namespace, script, scriptSubdomain } from './cloudflare-schema.ts'
import type { Provider } from './resource.ts'
import { scriptResource } from './script-resource.ts'
import { domainResource, namespaceResource, subdomainResource } from './small-resources.ts'

/** `directory` is the working directory of Terraform; the path of the script is relative to it. */
export const cloudflare = (account: Account, directory: string): Provider => ({
  name: 'Cloudflare',
  source: 'cloudflare/cloudflare',
  schema: cloudflareProvider,
  resources: {
    cloudflare_workers_kv_namespace: { schema: namespace, behavior: namespaceResource(account) },
    cloudflare_workers_script: { schema: script, behavior: scriptResource(account, directory) },
    cloudflare_workers_script_subdomain: { schema: scriptSubdomain, behavior: subdomainResource(account) },
    cloudflare_workers_custom_domain: { schema: customDomain, behavior: domainResource(account) },
  },
})
