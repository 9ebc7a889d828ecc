import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCliFolder, runPoolctl } from './support/cli.ts'
import { invalidInput, writeInputFiles } from './support/invalid-input.ts'

const home = createCliFolder()
const file = (name: string): string => join(home.folder, name)

beforeAll(async () => {
  const set = ['contexts', 'set', 'test', '--api', 'http://127.0.0.1:1', '--witness', 'http://127.0.0.1:1']
  await runPoolctl(set, home)
  writeInputFiles(home.folder)
})
afterAll(() => home[Symbol.dispose]())

describe(`${invalidInput.length} kinds of invalid input`, () => {
  test.each(invalidInput)('poolctl %s', async (line, error) => {
    const args = line.split(' ').map(word => (word.startsWith('@') ? file(word.slice(1)) : word))
    const { exitCode, stdout, stderr } = await runPoolctl(args, home)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    const [first = '', second = ''] = stderr.split('\n')
    expect(first).toContain(error)
    if (!error.startsWith('Usage')) {
      expect(first).toMatch(/^error: /)
      expect(second).toMatch(/^Run "poolctl .*--help" for the usage\.$/)
    }
  })

  test('no two have the same line', () => {
    expect(new Set(invalidInput.map(([line]) => line)).size).toBe(invalidInput.length)
    expect(invalidInput.length).toBeGreaterThanOrEqual(60)
  })
})

test.each(['names list pool.test', 'leases list'])('without a context, %s says how to create one', async line => {
  using other = createCliFolder()
  expect(await runPoolctl(line.split(' '), other)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('run: poolctl contexts set NAME --api URL'),
  })
})

test('a context without the service says how to add it', async () => {
  using other = createCliFolder()
  await runPoolctl(['contexts', 'set', 'a', '--api', 'http://127.0.0.1:1'], other)
  expect(await runPoolctl(['leases', 'list'], other)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('run: poolctl contexts set a --witness URL'),
  })
})
