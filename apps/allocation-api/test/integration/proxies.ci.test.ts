import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, isListening } from '@pool/dev/ports'
import { findProgram, startServerAndWait } from '@pool/dev/server-process'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { isProof, proofSize } from '@pool/test-kit/proof-size.ts'
import { smallPoolEnv, startApi } from '@pool/test-kit/services.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'

const page = readFileSync(new URL('../../../../docs/operate/proxies.md', import.meta.url), 'utf8')

/** Of the idle times: 60 s at the proxy, 75 s at the service. */
const scale = isProof ? 1 : 1 / 5
const CLIENTS = proofSize(1_000, 200)

/** The configuration of the page with the addresses and the idle times of the test. */
const readConfig = (language: string, listen: number, server: number, checked: number): string => {
  const [, block = ''] = new RegExp(`\`\`\`${language}\n([^\`]*)\`\`\``).exec(page) ?? []
  return (
    block
      .replace(/(listen |bind :)80/, language === 'nginx' ? `listen 127.0.0.1:${listen}` : `bind 127.0.0.1:${listen}`)
      .replace('10.0.0.1:8080', `127.0.0.1:${server}`)
      // The path with a delay has no half-closed connections, which a check uses.
      .replace('check inter', `check port ${checked} inter`)
      .replaceAll(/\b[67]0s\b/g, time => `${Number.parseInt(time, 10) * scale}s`)
  )
}

const proxies = [
  {
    name: 'nginx',
    toFile: (config: string, folder: string) =>
      `daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr; events { worker_connections 4096; }\nhttp { access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;\n${config}}`,
    toCommand: (program: string, file: string) => [program, '-c', file],
  },
  {
    name: 'haproxy',
    toFile: (config: string) => `global\n  maxconn 4096\n${config}`,
    toCommand: (program: string, file: string) => [program, '-db', '-f', file],
  },
]

const post = (port: number, agent: Agent, subdomain: string): Promise<string> =>
  new Promise(resolve => {
    const sent = request(
      { port, host: '127.0.0.1', agent, method: 'POST', path: '/api/v1/pool/pool.test/reserve' },
      response => {
        response.resume().on('end', () => resolve(String(response.statusCode)))
      },
    )
    sent.on('error', error => resolve(error.message)).end(JSON.stringify({ subdomain }))
  })

/** The idle time of a connection in seconds: around that of Node's default, or near that of the proxies. */
const toIdleS = (client: number): number =>
  client % 2 === 0 ? 5.7 + 0.5 * (client / CLIENTS) : 60 * scale - 2 - 4 * scale * (client / CLIENTS)

test.concurrent.each(proxies)(
  'through $name as documented, a POST after any idle time has one response, and is executed once',
  async ({ name, toFile, toCommand }) => {
    const program = findProgram(name)
    if (shouldSkip(program ? undefined : `${name} is not installed, its test is skipped: apt-get install ${name}`))
      return
    const database = await createTestDatabase()
    const api = await startApi(database.url, {
      ...smallPoolEnv,
      PDM_TRUSTED_PROXIES: '127.0.0.1',
      PDM_KEEP_ALIVE_TIMEOUT: `${75 * scale}s`,
    })
    // The path has a delay, so that a request and the end of its connection can cross.
    const path = await startTcpProxy(api.port)
    path.delay(15)
    const folder = await mkdtemp(join(tmpdir(), 'pool-proxy-'))
    await chmod(folder, 0o755)
    const listen = await freePort()
    const file = join(folder, 'config')
    await writeFile(file, toFile(readConfig(name, listen, path.port, api.port), folder))
    const stop = await startServerAndWait({
      name,
      folder,
      command: toCommand(program as string, file),
      isUp: async () => (await isListening(listen)) && (await fetch(`http://127.0.0.1:${listen}/livez`)).status === 200,
    })
    const outcomes = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        await sleep(client)
        const agent = new Agent({ keepAlive: true, maxSockets: 1 })
        const first = await post(listen, agent, `first-${client}`)
        await sleep(1_000 * toIdleS(client))
        const second = await post(listen, agent, `second-${client}`)
        agent.destroy()
        return [first, second]
      }),
    )
    expect(new Set(outcomes.flat())).toEqual(new Set(['201']))
    const [row] = await database.sql`
      select count(*)::int as count from allocation_history where event = 'reserved'`
    expect(row?.count).toBe(2 * CLIENTS)
    await stop()
    await path.close()
    await api.process.stop()
    await database.drop()
    await rm(folder, { recursive: true, force: true })
  },
)
