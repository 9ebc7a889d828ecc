import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { temporaryDirectory } from './support/witness.ts'

/** The free plan allows 3 MB. More than this means that an unexpected library is in the bundle. */
const MAX_COMPRESSED_KIB = 256
const SECRET = 'a-token-of-the-shell-that-builds-0123456789'

const projectRoot = resolve(import.meta.dirname, '../../../..')
const wrangler = join(dirname(createRequire(import.meta.url).resolve('wrangler/package.json')), 'bin/wrangler.js')

let output = ''
let bundle = ''

beforeAll(async () => {
  using directory = temporaryDirectory()
  const run = await promisify(execFile)(
    process.execPath,
    [wrangler, 'deploy', '--config', join(projectRoot, 'wrangler.toml'), '--dry-run', '--outdir', directory.path],
    {
      cwd: resolve(import.meta.dirname, '../..'),
      env: {
        PATH: process.env.PATH,
        HOME: directory.path,
        BEARER_TOKENS_CSV: SECRET,
        CLOUDFLARE_CF_FETCH_ENABLED: 'false',
        WRANGLER_SEND_METRICS: 'false',
      },
    },
  )
  output = `${run.stdout}${run.stderr}`
  const modules = readdirSync(directory.path).filter(name => name.endsWith('.js'))
  expect(modules).toEqual(['index.js'])
  bundle = readFileSync(join(directory.path, 'index.js'), 'utf8')
}, 180_000)

test('the bindings are the KV namespace, the Durable Objects and the log level', () => {
  const bindings = [...output.matchAll(/^env\.(.+?)\s{2,}(.+?)\s*$/gm)].map(([, binding, kind]) => [binding, kind])
  expect(bindings).toEqual([
    ['LEASES (LeaseObject)', 'Durable Object'],
    ['OPENOVA_LEASES (00000000000000000000000000000000)', 'KV Namespace'],
    ['LOG_LEVEL ("info")', 'Environment Variable'],
  ])
})

test('the module exports only the Durable Object and the handler', () => {
  const [, names = ''] = /export \{([^}]*)\};?\s*(?:\/\/#.*\s*)?$/.exec(bundle) ?? []
  const exported = names.split(',').map(name => name.trim().replace(/^.* as /, ''))
  expect(exported.sort()).toEqual(['LeaseObject', 'default'])
})

test('it imports only modules of the runtime', () => {
  const imported = [...bundle.matchAll(/^(?:import|export)\b[^;]*?\bfrom\s*["']([^"']+)["']/gm)].map(([, from]) => from)
  expect([...new Set(imported)]).toEqual(['cloudflare:workers'])
  expect(bundle).not.toMatch(/^\s*import\s*["']|\brequire\(["']|["']node:/m)
})

test('it is small, and contains no token', () => {
  const compressed = gzipSync(bundle).length / 1_024
  expect(compressed).toBeLessThan(MAX_COMPRESSED_KIB)
  expect(bundle).not.toContain(SECRET)
  expect(output).not.toContain(SECRET)
})
