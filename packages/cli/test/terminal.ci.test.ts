import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCliFolder, ENTRY, runPoolctl } from './support/cli.ts'

/** `script` of util-linux runs a command in a pseudo-terminal. That of BSD and macOS has other arguments. */
const isMissing = !spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux')
const missingTerminal = isMissing ? 'poolctl in a terminal: apt-get install util-linux (script)' : undefined

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

interface TerminalSession {
  /** Everything on the screen so far, with its escape sequences. */
  readonly output: () => string
  /** Resolves when the text is on the screen. Rejects with the screen if poolctl ends before. */
  waitFor(text: string): Promise<void>
  /** Types on the keyboard; `\u0003` is Ctrl-C. */
  type(keys: string): void
  readonly exitCode: Promise<number | null>
}

/** Runs poolctl in a terminal. `before` are shell commands that run in it first. */
const openTerminal = (args: readonly string[], env: NodeJS.ProcessEnv, columns = 80): TerminalSession => {
  // Without the echo of `script` itself: its own standard input is a pipe.
  const command = `stty cols ${columns} rows 40; exec ${[process.execPath, ENTRY, ...args].map(quote).join(' ')}`
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  const waiting = new Set<() => void>()
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
    for (const check of waiting) check()
  })
  child.stdin.on('error', () => {})
  const exitCode = new Promise<number | null>(resolve => child.once('close', resolve))
  return {
    output: () => output,
    async waitFor(text) {
      await new Promise<void>((resolve, reject) => {
        const check = () => {
          if (!stripVTControlCharacters(output).includes(text)) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        void exitCode.then(code =>
          reject(new Error(`poolctl ended with ${code} before it printed ${text}:\n${output}`)),
        )
        check()
      })
    },
    type: keys => void child.stdin.write(keys),
    exitCode,
  }
}

const home = createCliFolder()
const SECRET = 'SECRETSECRETKEY'.repeat(4)
const ACCESS = 'SECRETACCESSKEY00000'
const bodies: string[] = []

/** A service that accepts keys, has one name with a long holder, and never ends a release. */
const server = createServer((request, response) => {
  let body = ''
  request.on('data', chunk => {
    body += chunk
  })
  request.on('end', () => {
    bodies.push(body)
    if (request.url?.includes('/release')) return
    const value = request.url?.includes('/validate')
      ? { valid: true, message: 'The keys are accepted.' }
      : {
          poolDomain: 'pool.test',
          allocations: [
            {
              poolDomain: 'pool.test',
              subdomain: 'acme',
              state: 'reserved',
              reservedAt: '2026-01-31T12:00:00.000Z',
              expiresAt: '2026-01-31T12:10:00.000Z',
              createdBy: 'x'.repeat(200),
            },
          ],
        }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
  })
})

beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  await runPoolctl(['contexts', 'set', 'test', '--api', `http://127.0.0.1:${port}`], home)
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  home[Symbol.dispose]()
})

describe.skipIf(shouldSkip(missingTerminal))('poolctl in a terminal', () => {
  test('a table has colour, and no line is wider than the terminal', async () => {
    const terminal = openTerminal(['names', 'list', 'pool.test'], home.env, 70)
    expect(await terminal.exitCode).toBe(0)
    expect(terminal.output()).toContain('\u001b[33mreserved\u001b[39m')
    const lines = stripVTControlCharacters(terminal.output()).trimEnd().split('\r\n')
    expect(lines).toHaveLength(2)
    expect(lines.every(line => line.length <= 70)).toBe(true)
    expect(lines[1]).toContain('…')
  })

  test.each([
    ['NO_COLOR', ['names', 'list', 'pool.test'], { NO_COLOR: '1' }],
    ['--no-color', ['names', 'list', 'pool.test', '--no-color'], {}],
    ['TERM=dumb', ['names', 'list', 'pool.test'], { TERM: 'dumb' }],
  ])('%s turns colour off', async (_, args, env) => {
    const terminal = openTerminal(args, { ...home.env, ...env })
    expect(await terminal.exitCode).toBe(0)
    expect(terminal.output()).not.toContain('\u001b[')
  })

  test('keys are typed without an echo, and sent', async () => {
    const terminal = openTerminal(['credentials', 'validate', '--region', 'fsn1'], home.env)
    await terminal.waitFor('Access key: ')
    // A typing error, corrected.
    terminal.type(`${ACCESS}x\u007f\r`)
    await terminal.waitFor('Secret key: ')
    terminal.type(`${SECRET}\r`)
    expect(await terminal.exitCode).toBe(0)
    expect(terminal.output()).toContain('The keys are accepted.')
    expect(terminal.output()).not.toContain('SECRET')
    expect(JSON.parse(bodies.findLast(body => body.includes('accessKey')) ?? '')).toMatchObject({
      accessKey: ACCESS,
      secretKey: SECRET,
    })
  })

  test.each([
    ['Ctrl-C', '\u0003', 130],
    ['Ctrl-D', '\u0004', 2],
  ])('%s at a prompt sends nothing', async (_, key, expected) => {
    const before = bodies.length
    const terminal = openTerminal(['credentials', 'validate', '--region', 'fsn1'], home.env)
    await terminal.waitFor('Access key: ')
    terminal.type(key)
    expect(await terminal.exitCode).toBe(expected)
    expect(bodies.length).toBe(before)
  })

  test('a confirmation needs the name', async () => {
    const terminal = openTerminal(['names', 'release', 'acme.pool.test'], home.env)
    await terminal.waitFor('Type acme.pool.test to continue: ')
    terminal.type('yes\r')
    expect(await terminal.exitCode).toBe(2)
    expect(terminal.output()).toContain('Nothing was changed.')
  })

  test('the first Ctrl-C waits for the response to a write, the second one ends the command', async () => {
    const terminal = openTerminal(['names', 'release', 'acme.pool.test', '--yes'], home.env)
    await expect.poll(() => bodies.some(body => body.includes('acme'))).toBe(true)
    terminal.type('\u0003')
    await terminal.waitFor('press Ctrl-C again to stop')
    terminal.type('\u0003')
    expect(await terminal.exitCode).toBe(130)
  })
})

test('without a terminal there is no colour and no shortened text', async () => {
  const { stdout } = await runPoolctl(['names', 'list', 'pool.test'], { ...home, fetch: globalThis.fetch })
  expect(stdout).not.toContain('\u001b')
  expect(stdout).toContain('x'.repeat(200))
})

test('a debug log has no secret', async () => {
  const file = join(home.folder, 'keys.json')
  writeFileSync(file, JSON.stringify({ accessKey: ACCESS, secretKey: SECRET }), { mode: 0o600 })
  const args = ['credentials', 'validate', '--region', 'fsn1', '--keys-file', file, '--verbose']
  const { stdout, stderr } = await runPoolctl(args, { ...home, fetch: globalThis.fetch })
  expect(stderr).toMatch(/^POST \/api\/v1\/credentials\/object-storage\/validate: 200 after \d+ ms/)
  expect(`${stdout}${stderr}`).not.toContain('SECRET')
  expect(readFileSync(home.config, 'utf8')).not.toContain('SECRET')
})
