import { describe, expect, test } from 'vitest'
import { runProgram, toSkipReason } from '../../src/ceph/programs.ts'
import { isSkipped } from './skip.ts'

test('missing programs are reported in one line that names the packages to install', () => {
  expect(toSkipReason([])).toBeUndefined()
  expect(toSkipReason(['radosgw', 'ceph-mon'])).toBe(
    'without a Ceph object gateway (radosgw, ceph-mon): apt-get install --no-install-recommends ceph-mon ceph-osd radosgw',
  )
})

describe.skipIf(isSkipped)('a program that fails', () => {
  test('is reported with its name, exit code and output', async () => {
    await expect(runProgram('monmaptool', ['--create'], { env: {} })).rejects.toThrow(
      /^monmaptool failed \(1\):\n.*must specify/s,
    )
  })
})
