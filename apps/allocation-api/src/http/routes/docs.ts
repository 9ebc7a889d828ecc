import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Hono } from 'hono'
import { problem } from '../errors.ts'
import type { HttpEnv } from '../types.ts'

/** The files of the reference page's library that are served, with their types; nothing else can be asked for. */
const assets: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'swagger-ui.css': 'text/css; charset=utf-8',
    'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  }),
)

const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

const start = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true, validatorUrl: null })`

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Allocation API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<div id="reference"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</html>
`

/** Everything comes from this service, so that the page works without the internet and can reach nothing else. */
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

export const descriptionRoutes = (document: object) =>
  new Hono<HttpEnv>()
    .get('/openapi.json', c => c.json(document, 200))
    .get('/docs', c => c.html(page, 200, { 'Content-Security-Policy': policy }))
    .get('/docs/:asset', async c => {
      const asset = c.req.param('asset')
      if (asset === 'start.js') return c.body(start, 200, { 'Content-Type': 'text/javascript; charset=utf-8' })
      const type = assets.get(asset)
      if (!type) return problem(c, { kind: 'not-found', detail: 'There is no such file.' })
      return c.body(await readFile(join(folder, asset)), 200, { 'Content-Type': type })
    })
