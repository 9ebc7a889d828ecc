import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { errors, operationList, operations } from '@pool/contract'
import { leaseOperations } from '@pool/contract/lease-operations'
import { leaseErrors } from '@pool/contract/lease-problem'
import { toReference } from '@pool/contract/openapi/page'
import type { Context } from 'hono'
import { type Handlers, type HttpEnv, type Listener, sendError, validated } from '../request.ts'
import { type StreamLimiter, sendFile } from '../streams.ts'

const SCRIPT_TYPE = 'text/javascript; charset=utf-8'

/** The served files of Swagger UI with their content types. No other file can be requested. */
const ASSET_TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'swagger-ui.css': 'text/css; charset=utf-8',
    'swagger-ui-bundle.js': SCRIPT_TYPE,
  }),
)

const require = createRequire(import.meta.url)
const assets = new Map<string, Promise<Buffer>>()
const readOnce = (name: string, read: () => Promise<Buffer>): Promise<Buffer> => {
  const asset = assets.get(name) ?? read()
  assets.set(name, asset)
  return asset
}

const DOCUMENTS = {
  'allocation-api': new URL('../../../../../docs/reference/allocation-api.openapi.json', import.meta.url),
  'lease-witness': new URL('../../../../../docs/reference/lease-witness.openapi.json', import.meta.url),
}
type Service = keyof typeof DOCUMENTS

const toScript = (document: unknown): Buffer => Buffer.from(`const reference = ${JSON.stringify(document)}\n`)
const readDocument = async (service: Service) => JSON.parse(await readFile(DOCUMENTS[service], 'utf8'))

/** The generated document, without the white space that its file has for readers. */
const readOpenApi = (): Promise<Buffer> =>
  readOnce('openapi', async () => Buffer.from(JSON.stringify(await readDocument('allocation-api'))))

/** A script with the document of a page. The operations of another listener are not on it, and a padlock means that a token is needed. */
const readReference = (service: Service, listener: Listener): Promise<Buffer> =>
  readOnce(`${service} ${listener}`, async () => {
    const document = await readDocument(service)
    if (service === 'lease-witness') {
      const shown = Object.values(leaseOperations).filter(({ method }) => method !== 'options')
      return toScript(toReference(document, { operations: shown, errors: leaseErrors, security: document.security }))
    }
    const isOperator = listener === 'operator'
    const shown = isOperator ? operationList : operationList.filter(one => one.listener !== 'operator')
    return toScript(
      toReference(document, { operations: shown, errors, security: isOperator ? [{ operator: [] }] : [] }),
    )
  })

/** Its filter looks at each operation; the one of Swagger UI, at the names of the groups. The witness is another host. */
const START_SCRIPT = `new MutationObserver((_, watch) => {
  const input = document.querySelector('.operation-filter-input')
  if (!input) return
  watch.disconnect()
  input.placeholder = 'Filter the operations'
}).observe(document.body, { childList: true, subtree: true })
const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', follow)
follow()
const describe = operation => [operation.get('path'), operation.get('method'), ...['summary', 'operationId', 'description'].map(
  name => operation.getIn(['operation', name]) ?? '')].join(' ').toLowerCase()
SwaggerUIBundle({
  spec: reference, dom_id: '#reference', deepLinking: true, validatorUrl: null, filter: true,
  defaultModelsExpandDepth: -1,
  ...(location.pathname.endsWith('/lease-witness') ? { supportedSubmitMethods: [] } : {}),
  plugins: [{ fn: { opsFilter: (groups, phrase) => groups
    .map(group => group.update('operations', list => list.filter(one => describe(one).includes(phrase.toLowerCase()))))
    .filter(group => group.get('operations').size > 0) } }],
})
`

const toPage = (title: string, service: Service, listener: Listener): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/page.css">
<nav aria-label="Pages"><a href="/docs">Allocation API</a> <a href="/docs/lease-witness">Lease witness</a>${listener === 'operator' ? ' <a href="/console">Console</a>' : ''}</nav>
<div id="reference"></div>
<script src="/docs/${service}.js"></script>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</html>
`

const PAGE_STYLES = `:root { color-scheme: light dark }
body { margin: 0; background: light-dark(#fff, #1c2022) }
nav { display: flex; flex-wrap: wrap; gap: 1.5em; padding: 1em 20px 0; max-width: 1420px; margin: auto; font: 16px sans-serif }
nav a { color: light-dark(#2a56b8, #9dbcff) }
.swagger-ui .filter .operation-filter-input { width: 100%; box-sizing: border-box }
.swagger-ui table, .swagger-ui .markdown code { overflow-wrap: anywhere }
.dark-mode .swagger-ui .header-col { color: inherit }
.swagger-ui .headers :is(th, td):last-child { display: none }
@media (max-width: 700px) {
  .swagger-ui .response-col_links { display: none }
  .swagger-ui .response-controls { display: block }
  .swagger-ui .responses-inner, .swagger-ui .opblock-description-wrapper { padding: 10px }
  .swagger-ui .response-col_status { padding-right: 10px }
}
`

/** Everything comes from this service, so the page works without internet access and cannot contact other hosts. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const sendPage = (c: Context<HttpEnv>, title: string, service: Service, listener: Listener) =>
  c.html(toPage(title, service, listener), 200, { 'Content-Security-Policy': CONTENT_SECURITY_POLICY })

export const docsHandlers = (
  files: StreamLimiter,
  listener: Listener,
): Pick<Handlers, 'getOpenApiDocument' | 'getApiReference' | 'getApiReferenceAsset'> => ({
  getOpenApiDocument: async c => sendFile(c, files, await readOpenApi(), 'application/json'),
  getApiReference: c => sendPage(c, 'Allocation API', 'allocation-api', listener),
  getApiReferenceAsset: validated(operations.getApiReferenceAsset, async (c, { path: { asset } }) => {
    switch (asset) {
      case 'start.js':
        return c.body(START_SCRIPT, 200, { 'Content-Type': SCRIPT_TYPE })
      case 'page.css':
        return c.body(PAGE_STYLES, 200, { 'Content-Type': 'text/css; charset=utf-8' })
      case 'lease-witness':
        return sendPage(c, 'Lease witness', 'lease-witness', listener)
      case 'allocation-api.js':
        return sendFile(c, files, await readReference('allocation-api', listener), SCRIPT_TYPE)
      case 'lease-witness.js':
        return sendFile(c, files, await readReference('lease-witness', listener), SCRIPT_TYPE)
    }
    const type = ASSET_TYPES.get(asset)
    if (!type) return sendError(c, { kind: 'not-found', detail: 'No such file.' })
    return sendFile(c, files, await readOnce(asset, () => readFile(require.resolve(`swagger-ui-dist/${asset}`))), type)
  }),
})
