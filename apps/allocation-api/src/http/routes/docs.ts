import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { operations } from '@pool/contract'
import { type Handlers, sendError, validated } from '../request.ts'
import { type StreamLimiter, sendFile } from '../streams.ts'

/** The served files of Swagger UI with their content types. No other file can be requested. */
const ASSET_TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'swagger-ui.css': 'text/css; charset=utf-8',
    'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  }),
)

const require = createRequire(import.meta.url)
const assets = new Map<string, Promise<Buffer>>()
const readAsset = (name: string): Promise<Buffer> => {
  const asset = assets.get(name) ?? readFile(require.resolve(`swagger-ui-dist/${name}`))
  assets.set(name, asset)
  return asset
}

const OPENAPI_FILE = new URL('../../../../../docs/reference/allocation-api.openapi.json', import.meta.url)

let openApi: Promise<Buffer> | undefined
/** The generated document, without the white space that its file has for readers. */
const readOpenApi = (): Promise<Buffer> => {
  openApi ??= readFile(OPENAPI_FILE, 'utf8').then(text => Buffer.from(JSON.stringify(JSON.parse(text))))
  return openApi
}

const START_SCRIPT = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true, validatorUrl: null })`

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Allocation API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<div id="reference"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</html>
`

/** Everything comes from this service, so the page works without internet access and cannot contact other hosts. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

export const docsHandlers = (
  files: StreamLimiter,
): Pick<Handlers, 'getOpenApiDocument' | 'getApiReference' | 'getApiReferenceAsset'> => ({
  getOpenApiDocument: async c => sendFile(c, files, await readOpenApi(), 'application/json'),
  getApiReference: c => c.html(PAGE, 200, { 'Content-Security-Policy': CONTENT_SECURITY_POLICY }),
  getApiReferenceAsset: validated(operations.getApiReferenceAsset, async (c, { path: { asset } }) => {
    if (asset === 'start.js') return c.body(START_SCRIPT, 200, { 'Content-Type': 'text/javascript; charset=utf-8' })
    const type = ASSET_TYPES.get(asset)
    if (!type) return sendError(c, { kind: 'not-found', detail: 'No such file.' })
    return sendFile(c, files, await readAsset(asset), type)
  }),
})
