import type { Provider } from '@pool/test-kit/terraform/resource.ts'
import type { Account } from './account.ts'
import { cloudflareProvider, customDomain, namespace, script, scriptSubdomain, scripts } from './cloudflare-schema.ts'
import { scriptResource, scriptsDataSource } from './script-resource.ts'
import { domainResource, namespaceResource, subdomainResource } from './small-resources.ts'

/** `directory` is the working directory of Terraform; the path of the script is relative to it. */
export const cloudflare = (account: Account, directory: string): Provider => ({
  name: 'Cloudflare',
  source: 'cloudflare/cloudflare',
  schema: cloudflareProvider,
  resources: {
    cloudflare_workers_kv_namespace: { schema: namespace, version: 500, behavior: namespaceResource(account) },
    cloudflare_workers_script: { schema: script, version: 500, behavior: scriptResource(account, directory) },
    cloudflare_workers_script_subdomain: { schema: scriptSubdomain, behavior: subdomainResource(account) },
    cloudflare_workers_custom_domain: { schema: customDomain, version: 500, behavior: domainResource(account) },
  },
  dataSources: { cloudflare_workers_scripts: scriptsDataSource(account, scripts) },
})
