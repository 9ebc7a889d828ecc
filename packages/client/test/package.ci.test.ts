import { execFile, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { packClient } from '@pool/test-kit/pack-client.ts'
import { startAllocationApi, startWitness, type TestAllocationApi, type TestWitness } from '@pool/testing'
import { build, stop } from 'esbuild'
import { convertV4MiniflareOptions, Miniflare, NoOpLog } from 'miniflare'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

// The package as a user gets it: built, packed, and installed with npm in an empty project.

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))
/** Node prints the whole line of an uncaught error. */
const MAX_LINE = 700
const MAX_GZIPPED_BYTES = 36_000
/** A command that needs longer is not slow but stuck. */
const STUCK_MS = 240_000

/** The first Node of a major version in PATH; undefined: there is none. */
const findNode = async (major: number): Promise<string | undefined> => {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const file = join(folder, 'node')
    const version = await run(file, ['--version']).then(
      ({ stdout }) => stdout,
      () => '',
    )
    if (version.startsWith(`v${major}.`)) return file
  }
  return undefined
}

const findChromium = async (): Promise<string | undefined> => {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    const found = await run(name, ['--version']).then(
      () => true,
      () => false,
    )
    if (found) return name
  }
  return undefined
}

const node20 = await findNode(20)
const chromium = await findChromium()

/** The JavaScript of the README and of the page for services in a cluster, one program each. */
const snippets = ['README.md', '../../docs/clients/in-cluster.md'].flatMap(page =>
  Array.from(readFileSync(join(root, page), 'utf8').matchAll(/^```js\n([\s\S]*?)^```$/gm), ([, code = '']) => code),
)

const cleanup = new AsyncDisposableStack()
let api: TestAllocationApi
let witness: TestWitness
let project: string
let installed: string

beforeAll(async () => {
  api = cleanup.use(await startAllocationApi())
  witness = await startWitness()
  cleanup.defer(() => witness[Symbol.asyncDispose]())
  project = await mkdtemp(join(tmpdir(), 'client-package-'))
  cleanup.defer(() => rm(project, { recursive: true, force: true }))
  const archive = await packClient(project)
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }')
  await run('npm', ['install', '--no-audit', '--no-fund', archive], { cwd: project, timeout: STUCK_MS })
  installed = join(project, 'node_modules/@pool/client')
}, 600_000)
afterAll(() => cleanup.disposeAsync(), 60_000)

test('publint has nothing to say', async () => {
  const { messages } = await publint({ pkgDir: installed, pack: false, strict: true })
  expect(messages).toEqual([])
})

test('zod is the only dependency, and there is no source of Node in it', async () => {
  const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  expect(Object.keys(dependencies)).toEqual(['zod'])
  const { metafile } = await build({
    absWorkingDir: installed,
    entryPoints: ['dist/index.js'],
    bundle: true,
    platform: 'neutral',
    external: ['zod'],
    write: false,
    metafile: true,
  }).finally(stop)
  const imports = Object.values(metafile.inputs).flatMap(input => input.imports.filter(({ external }) => external))
  expect(new Set(imports.map(({ path }) => path))).toEqual(new Set(['zod']))
})

test('the code without zod is small, and its lines are short', () => {
  const files = readdirSync(join(installed, 'dist')).filter(name => name.endsWith('.js'))
  const codes = files.map(name => readFileSync(join(installed, 'dist', name), 'utf8'))
  expect(codes.map(code => gzipSync(code).length).reduce((sum, size) => sum + size)).toBeLessThan(MAX_GZIPPED_BYTES)
  expect(Math.max(...codes.flatMap(code => code.split('\n').map(line => line.length)))).toBeLessThan(MAX_LINE)
})

test.each([
  ['a browser', { lib: ['es2022', 'dom', 'dom.iterable'], types: [] }, 'bundler'],
  ['Node', { lib: ['es2023'], types: ['node'] }, 'nodenext'],
])('the types are complete for %s', async (name, options, moduleResolution) => {
  const folder = join(project, `types-${moduleResolution}`)
  await mkdir(join(folder, 'node_modules/@types'), { recursive: true })
  if (name === 'Node') {
    const types = fileURLToPath(new URL('.', import.meta.resolve('@types/node/package.json')))
    await symlink(types, join(folder, 'node_modules/@types/node'))
  }
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        ...options,
        target: 'es2022',
        module: moduleResolution === 'bundler' ? 'esnext' : 'nodenext',
        moduleResolution,
        strict: true,
        noEmit: true,
        skipLibCheck: false,
      },
      files: ['main.ts'],
    }),
  )
  await writeFile(
    join(folder, 'main.ts'),
    `import { AllocationClient, LeaseClient, ProblemError, type Result } from '@pool/client'
const client = new AllocationClient({ baseUrl: 'http://localhost', fetch })
export const leases = new LeaseClient({ baseUrl: 'http://localhost', token: 'token' })
export const reserve = async (): Promise<Result<'reserveName'>> => {
  try {
    return await client.reserveName({ domain: 'pool.test', subdomain: 'acme' }, { signal: AbortSignal.timeout(1) })
  } catch (error) {
    if (error instanceof ProblemError && error.code === 'cooling-off') return await reserve()
    throw error
  }
}
// @ts-expect-error: the subdomain is missing.
client.reserveName({ domain: 'pool.test' })
// @ts-expect-error: the service has no such code.
export const isCode = (error: ProblemError): boolean => error.code === 'no-such-code'
`,
  )
  const { stdout } = await run('tsc', ['-p', folder], { timeout: STUCK_MS }).catch(error => error)
  expect(stdout).toBe('')
})

test('a method has the summary of its operation as its comment', async () => {
  const declarations = await readFile(join(installed, 'dist/types/contract/src/call-operations.d.ts'), 'utf8')
  expect(declarations).toMatch(/\/\*\* Reserves a free name for a limited time\. \*\/\n +readonly reserveName: /)
})

const runSnippets = async (node: string): Promise<readonly string[]> => {
  const outputs: string[] = []
  for (const [index, code] of snippets.entries()) {
    const file = join(project, `snippet-${index}.js`)
    await writeFile(file, code)
    const env = {
      ALLOCATION_API_URL: api.url,
      LEASE_WITNESS_URL: witness.url,
      LEASE_WITNESS_TOKEN: witness.token,
    }
    // The last program gives a name, changes its address and releases it.
    const isName = index === snippets.length - 1
    const runs = isName ? [['shop', '203.0.113.10'], ['shop', '203.0.113.11'], ['shop']] : [[]]
    let output = ''
    for (const args of runs) {
      const { stdout, stderr } = await run(node, [file, ...args], { cwd: project, env, timeout: STUCK_MS })
      expect(stderr).toBe('')
      output += stdout
    }
    outputs.push(output)
  }
  return outputs
}

const expected = [
  'acme.pool.test is active\nits records are published\n',
  expect.stringMatching(/^listAllocations 200 \d+\n$/),
  expect.stringMatching(/^report of the holder with fencing token \d+\n$/),
  'shop.pool.test: published\nshop.pool.test: published\nshop.pool.test: released\n',
]

test('the programs of the README and of the page for services run on Node 24', async () => {
  expect(await runSnippets(process.execPath)).toEqual(expected)
})

test.skipIf(shouldSkip(node20 ? undefined : 'Node 20 is not in PATH: install it to run the client on it.'))(
  'the programs of the README and of the page for services run on Node 20',
  async () => {
    expect(await runSnippets(node20 ?? '')).toEqual(expected)
  },
)

/** One program for a Worker and a browser: a name from reservation to release, and a lease. */
const PROGRAM = `
import { AllocationClient, createIdentity, LeaseClient, withLease } from '@pool/client'
export const useBoth = async ({ api, witness, token, subdomain }) => {
  const client = new AllocationClient({ baseUrl: api })
  const name = { domain: 'pool.test', subdomain }
  const { reservationToken } = await client.reserveAndCommit({ ...name, loadBalancerIP: '203.0.113.10' })
  const { dns } = await client.waitUntilPublished(name)
  const { freed } = await client.releaseName({ ...name, reservationToken })
  const leases = new LeaseClient({ baseUrl: witness, token })
  const fencingToken = await withLease(subdomain, async lease => lease.fencingToken, { leases, identity: createIdentity(subdomain) })
  const error = await client.releaseName({ ...name, reservationToken }).catch(error => error)
  return { dns: dns.status, freed: freed.sovereignFQDN, fencingToken, code: error.code }
}`

/** Bundles the program with what npm installed, as a Worker's or a page's build does. */
const bundleProgram = async (name: string, entry: string): Promise<string> => {
  await writeFile(join(project, 'program.js'), PROGRAM)
  await writeFile(join(project, `${name}.js`), entry)
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: [`${name}.js`],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
  }).finally(stop)
  return outputFiles[0]?.text ?? ''
}

const expectUse = (subdomain: string) => ({
  dns: 'published',
  freed: `${subdomain}.pool.test`,
  fencingToken: 1,
  code: 'not-found',
})

test('runs in a Worker', async () => {
  const script = await bundleProgram(
    'worker',
    `import { useBoth } from './program.js'
     export default { fetch: async request => Response.json(await useBoth(await request.json())) }`,
  )
  const worker = new Miniflare(
    convertV4MiniflareOptions({
      name: 'client',
      modules: [{ type: 'ESModule', path: 'index.mjs', contents: script }],
      compatibilityDate: '2026-05-01',
      cf: false,
      log: new NoOpLog(),
    }),
  )
  try {
    const options = { api: api.url, witness: witness.url, token: witness.token, subdomain: 'worker' }
    const response = await worker.dispatchFetch('http://worker/', { method: 'POST', body: JSON.stringify(options) })
    expect(await response.json()).toEqual(expectUse('worker'))
  } finally {
    await worker.dispose()
  }
})

const readText = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

describe('in a browser', () => {
  /** Serves the page and the services at one origin, because the services permit no other. Resolves with the result. */
  const serve = async (script: string) => {
    const result = Promise.withResolvers<unknown>()
    const server = createServer(async (request, response) => {
      const { url = '', method = '', headers } = request
      const text = await readText(request)
      if (url === '/')
        response.setHeader('Content-Type', 'text/html').end('<script type="module" src="/page.js"></script>')
      else if (url === '/page.js') response.setHeader('Content-Type', 'text/javascript').end(script)
      else if (url === '/result') {
        result.resolve(JSON.parse(text))
        response.end()
      } else {
        const target = url.startsWith('/api/') ? api.url : witness.url
        const forwarded = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
          typeof value !== 'string' || ['host', 'connection', 'content-length'].includes(name) ? [] : [[name, value]],
        )
        const answer = await fetch(target + url, { method, headers: forwarded, ...(text === '' ? {} : { body: text }) })
        const kept = ['content-type', 'etag', 'lease-remaining-ms', 'lease-conflict', 'retry-after', 'x-request-id']
        for (const name of kept) {
          const value = answer.headers.get(name)
          if (value !== null) response.setHeader(name, value)
        }
        response.writeHead(answer.status).end(await answer.text())
      }
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    return { origin: `http://127.0.0.1:${port}`, result: result.promise, close: () => server.close() }
  }

  const missing = chromium ? undefined : 'Chromium is not installed: apt-get install chromium, to run the client in it.'

  test.skipIf(shouldSkip(missing))('runs in Chromium, at the origin of the services', async () => {
    const script = await bundleProgram(
      'page',
      `import { useBoth } from './program.js'
       const options = { api: location.origin, witness: location.origin, token: '${witness.token}', subdomain: 'browser' }
       const result = await useBoth(options).catch(error => ({ error: String(error) }))
       await fetch('/result', { method: 'POST', body: JSON.stringify(result) })`,
    )
    const { origin, result, close } = await serve(script)
    const profile = await mkdtemp(join(tmpdir(), 'client-chromium-'))
    const browser = spawn(
      chromium ?? '',
      [
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--disable-dev-shm-usage',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        `--user-data-dir=${profile}`,
        origin,
      ],
      { detached: true, stdio: ['ignore', 'ignore', 'pipe'] },
    )
    let output = ''
    browser.stderr.on('data', chunk => {
      output += chunk
    })
    const exited = new Promise<void>(resolve => browser.once('close', () => resolve()))
    const failed = exited.then(() => Promise.reject(new Error(`Chromium exited:\n${output}`)))
    try {
      expect(await Promise.race([result, failed])).toEqual(expectUse('browser'))
    } finally {
      failed.catch(() => undefined)
      if (browser.pid) process.kill(-browser.pid, 'SIGKILL')
      await exited
      close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    }
  })
})
