import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { deploymentEvent, operations } from '@pool/contract'
import { createOpenApiDocument } from '@pool/openapi'
import { Hono } from 'hono'
import { sendError } from '../errors.ts'
import type { HttpEnv } from '../types.ts'

/** The OpenAPI 3.1 document of the API. */
export const openApiDocument = (): object =>
  createOpenApiDocument({
    title: 'Pool subdomain allocation',
    description: 'The authority for which subdomains of a pool domain are reserved or active.',
    operations,
    headers: { 'X-Request-Id': 'The id of this request in the log.' },
    // Not a body: it is the data of a server-sent event.
    schemas: { DeploymentEvent: deploymentEvent },
    bearer: {
      name: 'operator',
      description: 'Required on the operator listener, for every path.',
      isOptional: true,
    },
  })

/** The served files of Swagger UI with their content types. No other file can be requested. */
const ASSET_TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'swagger-ui.css': 'text/css; charset=utf-8',
    'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  }),
)

const assetDir = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

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
const CONTENT_SECURITY_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

export const docsRoutes = (document: object) =>
  new Hono<HttpEnv>()
    .get('/openapi.json', c => c.json(document, 200))
    .get('/docs', c => c.html(PAGE, 200, { 'Content-Security-Policy': CONTENT_SECURITY_POLICY }))
    .get('/docs/:asset', async c => {
      const asset = c.req.param('asset')
      if (asset === 'start.js') return c.body(START_SCRIPT, 200, { 'Content-Type': 'text/javascript; charset=utf-8' })
      const type = ASSET_TYPES.get(asset)
      if (!type) return sendError(c, { kind: 'not-found', detail: 'No such file.' })
      return c.body(await readFile(join(assetDir, asset)), 200, { 'Content-Type': type })
    })
