import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { isRunning } from '@pool/test-kit/processes.ts'
import { startWitness, type TestWitness } from '@pool/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCliFolder, ENTRY, runPoolctl } from './support/cli.ts'

let witness: TestWitness
const home = createCliFolder()
const running = new Set<ChildProcess>()

beforeAll(async () => {
  witness = await startWitness()
  const file = join(home.folder, 'witness-token')
  writeFileSync(file, witness.token, { mode: 0o600 })
  await poolctl(`contexts set test --witness ${witness.url} --witness-token-file ${file}`)
})
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await witness?.stop()
  home[Symbol.dispose]()
})

const poolctl = (line: string, interrupted?: AbortSignal) =>
  runPoolctl(line.split(' '), { env: home.env, fetch: globalThis.fetch, ...(interrupted ? { interrupted } : {}) })

const readLease = async (slot: string) => JSON.parse((await poolctl(`leases get ${slot} -o json`)).stdout)

describe('leases', () => {
  test('a lease is acquired, renewed, listed and released', async () => {
    expect(await poolctl('leases get one')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('never written'),
    })
    expect(await poolctl('leases acquire one --holder region-a --ttl 1m')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('region-a'),
    })
    expect(await poolctl('leases acquire one --holder region-b')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringMatching(/one was not changed \(held\): region-a holds it for /),
    })
    expect(await poolctl('leases renew one --holder region-a --generation 7')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('(generation)'),
    })
    expect(await poolctl('leases renew one --holder region-a')).toMatchObject({ exitCode: 0 })
    expect((await poolctl('leases list one two')).stdout).toMatch(/^SLOT +HOLDER .*\none +region-a +2 /)
    expect(await poolctl('leases release one --holder region-b')).toMatchObject({ exitCode: 3 })
    expect(await poolctl('leases release one --holder region-a')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('released'),
    })
    const { transitions } = JSON.parse((await poolctl('leases history one -o json')).stdout)
    expect(transitions.map(({ event }: { event: string }) => event)).toEqual(['released', 'acquired'])
    await expect.poll(async () => (await poolctl('leases list --prefix on -o name')).stdout).toBe('one\n')
    await poolctl('leases acquire onward --holder region-a --ttl 1s')
    await poolctl('leases acquire only --holder region-a --ttl 1h')
    await expect
      .poll(async () => (await poolctl('leases list --prefix on')).stdout)
      .toMatch(/one +released .*\nonly +held .*\nonward +expired /)
  })

  test('the value of a lease is set, shown, kept and removed', async () => {
    const write = (verb: string, flags: string) => poolctl(`leases ${verb} valued --holder region-a ${flags}`)
    expect((await write('acquire', '--value https://10.0.0.7')).stdout).toMatch(/value: +https:\/\/10\.0\.0\.7\n/)
    expect((await write('renew', '--ttl 1m')).stdout).toContain('https://10.0.0.7')
    expect((await poolctl('leases list valued')).stdout).toMatch(/VALUE.*\n.* https:\/\/10\.0\.0\.7/)
    expect((await write('renew', '--value ')).stdout).not.toContain('value:')
    expect(await readLease('valued')).not.toHaveProperty('value')
  })

  test('several leases are renewed in one request, each decided alone', async () => {
    await poolctl('leases acquire many-1 --holder region-a')
    await poolctl('leases acquire many-2 --holder region-b')
    const { exitCode, stdout } = await poolctl('leases renew many-1 many-2 --holder region-a')
    expect(exitCode).toBe(3)
    expect(stdout).toMatch(/many-1 +renewed/)
    expect(stdout).toMatch(/many-2 +not-holder/)
  })

  test('behind a proxy that sends writes twice, an acquisition is uncertain, and a release succeeds', async () => {
    const twice: typeof fetch = async (input, init) => {
      if (init?.method === 'PUT' || init?.method === 'DELETE') await fetch(input, init)
      return fetch(input, init)
    }
    const behindProxy = (line: string) => runPoolctl(line.split(' '), { env: home.env, fetch: twice })
    expect(await behindProxy('leases acquire twice --holder region-a')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('by this command or another client of the same name (generation): region-a'),
    })
    expect(await behindProxy('leases release twice --holder region-a')).toMatchObject({ exitCode: 0 })
  })

  test('watch prints each change, and ends when the lease is vacant', async () => {
    await poolctl('leases acquire watched --holder region-a')
    const watching = poolctl('leases watch watched --until-vacant -o ndjson')
    await expect
      .poll(async () => JSON.parse((await poolctl('leases list watched -o json')).stdout).leases[0].waiters)
      .toBe(1)
    await poolctl('leases release watched --holder region-a')
    const { exitCode, stdout } = await watching
    expect(exitCode).toBe(0)
    expect(
      stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line).state),
    ).toEqual(['held', 'released'])
  })

  test('Ctrl-C ends watch with 130', async () => {
    const interrupted = new AbortController()
    const watching = poolctl('leases watch one', interrupted.signal)
    interrupted.abort('SIGINT')
    expect(await watching).toMatchObject({ exitCode: 130, stderr: 'error: interrupted\n' })
  })
})

interface Election {
  readonly child: ChildProcess
  readonly exitCode: Promise<number | null>
  readonly stderr: () => string
}

const elect = (slot: string, flags: readonly string[], command: readonly string[]): Election => {
  const child = spawn(process.execPath, [ENTRY, 'leases', 'elect', slot, ...flags, '--', ...command], {
    env: { PATH: process.env.PATH, ...home.env },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  running.add(child)
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const exitCode = new Promise<number | null>(resolve =>
    child.once('close', code => {
      running.delete(child)
      resolve(code)
    }),
  )
  return { child, exitCode, stderr: () => stderr }
}

/** Longer than a busy machine delays a renewal. */
const durations = ['--lease-duration', '60s', '--grace', '1s']
/** For the tests that wait for the end of a lease. A renewal has 24 s: with 5 s, a busy machine lost the lease first. */
const expiring = ['--lease-duration', '30s', '--grace', '5s']

/**
 * Writes its process id, then the time in milliseconds again and again until a signal ends it. `trap` is what it does at
 * SIGTERM.
 */
const writePid = (file: string, trap = 'exit 0') => [
  'sh',
  '-c',
  `trap '${trap}' TERM; echo $$ > ${file}; while :; do date +%s%3N >> ${file}.alive; sleep 0.05; done`,
]

const readLastTime = (file: string): number => Number(readFileSync(`${file}.alive`, 'utf8').trim().split('\n').at(-1))

const hasPid = (file: string): boolean => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n')

/** Fails as soon as the election ends without the command: its lease may be too short for a busy machine. */
const readPid = async (file: string, { child, stderr }: Election): Promise<number> => {
  await until(`the command wrote ${file}`, () => {
    if (!hasPid(file) && child.exitCode !== null)
      throw new Error(`The election ended with ${child.exitCode} before the command wrote ${file}: ${stderr()}`)
    return hasPid(file)
  })
  return Number(readFileSync(file, 'utf8'))
}

describe.concurrent('elect', () => {
  test.each([
    ['its own', ['sh', '-c', 'exit 7'], 7],
    ['128 + N after signal N', ['sh', '-c', 'kill -TERM $$'], 143],
    ['126 for a file that is not executable', ['/etc/passwd'], 126],
  ])('the exit code is %s, and the lease is released', async (_, command, expected) => {
    const slot = `exit-${expected}`
    expect(await elect(slot, durations, command).exitCode).toBe(expected)
    expect(await readLease(slot)).toMatchObject({ state: 'released' })
  })

  test('the command has the fencing token, and no token of the witness', async () => {
    const file = join(home.folder, 'environment')
    const show = `env > ${file}; ${process.execPath} ${ENTRY} leases get environment -o json > ${file}.lease`
    const flags = [...durations, '--holder', 'region-a', '--value', 'at 10.0.0.7']
    await elect('environment', flags, ['sh', '-c', show]).exitCode
    expect(JSON.parse(readFileSync(`${file}.lease`, 'utf8'))).toMatchObject({ value: 'at 10.0.0.7' })
    const text = readFileSync(file, 'utf8')
    const { generation } = await readLease('environment')
    expect(text).toContain('POOL_LEASE_SLOT=environment\n')
    expect(text).toContain('POOL_LEASE_HOLDER=region-a\n')
    const [, token = ''] = /POOL_FENCING_TOKEN=(\d+)\n/.exec(text) ?? []
    expect(Number(token)).toBeGreaterThan(0)
    expect(Number(token)).toBeLessThan(generation)
    expect(text).not.toContain(witness.token)
  })

  test.each([
    ['names of their own', []],
    ['one name', ['--holder', 'backup']],
  ])('a second candidate runs its command only after the first has ended, with %s', async (names, flags) => {
    const slot = `order-${flags.length}`
    const file = join(home.folder, slot)
    await poolctl(`leases acquire ${slot} --holder first`)
    const append = (name: string) => [
      'sh',
      '-c',
      `echo start-${name} >> ${file}; sleep 0.3; echo end-${name} >> ${file}`,
    ]
    const first = elect(slot, [...durations, ...flags], append('a'))
    const second = elect(slot, [...durations, ...flags], append('b'))
    await until(`both wait, with ${names}`, async () => {
      const { stdout } = await poolctl(`leases list ${slot} -o json`)
      return JSON.parse(stdout).leases[0].waiters === 2
    })
    await poolctl(`leases release ${slot} --holder first`)
    expect(await Promise.all([first.exitCode, second.exitCode])).toEqual([0, 0])
    const [start, end, ...rest] = readFileSync(file, 'utf8').trim().split('\n')
    expect(end).toBe(start?.replace('start', 'end'))
    expect(rest[1]).toBe(rest[0]?.replace('start', 'end'))
  })

  test.each(['SIGINT', 'SIGTERM'] as const)('%s stops the command, then releases the lease', async signal => {
    const file = join(home.folder, `stop-${signal}`)
    const election = elect(`stop-${signal}`, durations, writePid(file, 'exit 9'))
    const pid = await readPid(file, election)
    election.child.kill(signal)
    expect(await election.exitCode).toBe(9)
    expect(isRunning(pid)).toBe(false)
    expect(await readLease(`stop-${signal}`)).toMatchObject({ state: 'released' })
  })

  test('a command that ignores SIGTERM is killed after the grace time', async () => {
    const file = join(home.folder, 'stubborn')
    const election = elect('stubborn', durations, writePid(file, ':'))
    const pid = await readPid(file, election)
    election.child.kill('SIGTERM')
    expect(await election.exitCode).toBe(137)
    expect(isRunning(pid)).toBe(false)
  })

  test('if poolctl is killed, the command ends while the lease is held', async () => {
    const file = join(home.folder, 'killed')
    const election = elect('killed', durations, writePid(file, ':'))
    const pid = await readPid(file, election)
    election.child.kill('SIGKILL')
    await until('the command has ended', () => !isRunning(pid))
    expect(await readLease('killed')).toMatchObject({ state: 'held' })
  })

  test.each([
    ['ends at SIGTERM', 'exit 0'],
    ['ignores SIGTERM', ':'],
  ])('if poolctl is frozen for longer than the lease, a command that %s ends before the lease', async (_, trap) => {
    const slot = `frozen-${trap.length}`
    const file = join(home.folder, slot)
    const election = elect(slot, expiring, writePid(file, trap))
    const pid = await readPid(file, election)
    election.child.kill('SIGSTOP')
    await until('the lease has expired', async () => (await readLease(slot)).state === 'expired')
    expect(isRunning(pid)).toBe(false)
    expect(readLastTime(file)).toBeLessThan(Date.parse((await readLease(slot)).expiresAt))
    election.child.kill('SIGCONT')
    expect(await election.exitCode).toBe(124)
  })

  test.each([
    ['ends at SIGTERM', 'exit 0'],
    ['ignores SIGTERM', ':'],
  ])('if the witness cannot be reached, a command that %s ends before the lease', async (_, trap) => {
    const slot = `partition-${trap.length}`
    const file = join(home.folder, slot)
    const election = elect(slot, expiring, writePid(file, trap))
    const pid = await readPid(file, election)
    const fault = await witness.partition({ path: `/lease/${slot}` })
    expect(await election.exitCode).toBe(124)
    expect(isRunning(pid)).toBe(false)
    await fault.cancel()
    expect(readLastTime(file)).toBeLessThan(Date.parse((await readLease(slot)).expiresAt))
  })

  test('what the command started ends with it', async () => {
    const file = join(home.folder, 'grandchild')
    const election = elect('grandchild', durations, ['sh', '-c', `sleep 1000 & echo $! > ${file}; exit 0`])
    expect(await election.exitCode).toBe(0)
    const pid = await readPid(file, election)
    await until('the command has ended', () => !isRunning(pid))
  })
})
