import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const HOUR_MS = 3_600_000
const script = `
  const date = new Date(0)
  console.log(JSON.stringify([
    Date.now(), new Date().getTime(), Date.parse(Date()), date.getTime(), date instanceof Date, Date.UTC(1970, 0, 2),
    new Date('2026-01-01').toISOString(), performance.timeOrigin,
  ]))`

it('shifts the wall clock of a process and no other clock', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'soak-clock-'))
  const file = join(folder, 'clock')
  writeFileSync(file, String(-HOUR_MS))
  const output = execFileSync(
    process.execPath,
    ['--import', import.meta.resolve('../../src/soak/environment/shifted-clock.ts'), '-e', script],
    {
      env: { SOAK_CLOCK_FILE: file },
      encoding: 'utf8',
    },
  )
  const [now, constructed, parsed, ...rest] = JSON.parse(output)
  const origin = rest.pop()
  for (const time of [now, constructed, parsed]) {
    expect(time).toBeGreaterThan(Date.now() - HOUR_MS - 60_000)
    expect(time).toBeLessThanOrEqual(Date.now() - HOUR_MS)
  }
  expect(origin).toBeGreaterThan(Date.now() - 60_000)
  expect(rest).toEqual([0, true, 86_400_000, '2026-01-01T00:00:00.000Z'])
  await rm(folder, { recursive: true })
})
