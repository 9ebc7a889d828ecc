import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runCommand } from '../shared/run-command.ts'

const main = fileURLToPath(new URL('../../src/fuzz/main.ts', import.meta.url))

const fuzz = (args: readonly string[], interruptAt?: RegExp) => runCommand(main, args, interruptAt)

test('a small run of both services finds no violation and leaves nothing behind', async () => {
  const { code, stdout, stderr, left } = await fuzz(['--requests=800', '--seed=test', '--json'])
  expect({ code, violations: JSON.parse(stdout || '{}').violations }, stderr).toEqual({ code: 0, violations: [] })
  const { rows, figures, clean } = JSON.parse(stdout)
  expect(clean).toBe(true)
  const sum = (service: string, of: (row: { requests: number; classes: number[] }) => number) =>
    rows
      .filter((row: { service: string }) => row.service === service)
      .reduce((total: number, row: { requests: number; classes: number[] }) => total + of(row), 0)
  for (const service of ['api', 'witness']) {
    expect(sum(service, row => row.requests)).toBeGreaterThanOrEqual(400)
    expect(sum(service, row => row.classes[2] ?? 0)).toBeGreaterThan(40)
    expect(sum(service, row => row.classes[4] ?? 0)).toBeGreaterThan(40)
  }
  expect(figures.map(({ logLines }: { logLines: number }) => logLines > 150)).toEqual([true, true])
  expect(left).toEqual([])
})

test('stops everything that it started on Ctrl-C', async () => {
  const { code, left } = await fuzz(['--service', 'api'], /240000 requests/)
  expect(code).toBe(130)
  expect(left).toEqual([])
})
