import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { isProofOfLock, parseLockFile, parseProbe, readLockFile, toVariableFile } from './session.ts'

test('a variable file has the values in the syntax of HCL', () => {
  const values = { a: '1 "x"\n\b\f\\b $' + '{b} %{c} $d', provider_names: `["hcloud","$\{x}"]` }
  expect(toVariableFile(values)).toBe(
    'a = "1 \\"x\\"\\n\\u0008\\u000c\\\\b $${b} %%{c} $d"\nprovider_names = ["hcloud","$${x}"]\n',
  )
})

const toInfo = (id: string, operation: string) => `
Error: Error acquiring the state lock

Error message: conditional check failed
Lock Info:
  ID:        ${id}
  Path:      b/acme
  Operation: ${operation}
  Who:       root@host
`

test.each([
  ['no lock', 0, '', { kind: 'not-locked' }],
  ['the lock that exists', 1, toInfo('a-1', 'OperationTypeApply'), { kind: 'locked', id: 'a-1' }],
  ['only the lock of the probe', 1, toInfo('a-1', 'untaint'), { kind: 'unknown' }],
  [
    'both, as the http backend does',
    1,
    toInfo('a-1', 'untaint').replace('conditional check failed', 'HTTP remote state already locked:\nID=b-2'),
    { kind: 'locked', id: 'b-2' },
  ],
  ['another error', 1, 'Error: connection refused', { kind: 'unknown' }],
  ['nothing, because it was killed', null, '', { kind: 'unknown' }],
])('a probe that shows %s', (_, code, output, probe) => {
  expect(parseProbe(code, output)).toEqual(probe)
})

test.each([
  ['{"ID":"a-1","Operation":"x"}', 'a-1'],
  ['{"ID":""}', null],
  ['{}', null],
  ['{"ID":', null],
])('the ID in the lock file %s', (text, id) => {
  expect(parseLockFile(text)).toBe(id)
})

test.each([
  ['{"@message":"x","changes":{"add":1},"type":"change_summary"}', true],
  ['{"@message":"x","hook":{},"type":"refresh_start"}', true],
  ['{"@message":"Acquiring state lock.","type":"state_lock_acquire"}', false],
  ['{"@message":"Terraform 1.11.4","type":"version"}', false],
  ['{"@message":"\\"type\\":\\"apply_start\\"","type":"diagnostic"}', false],
  ['text with "type":"apply_start"', false],
])('whether %s shows that the state is locked', (line, expected) => {
  expect(isProofOfLock(line)).toBe(expected)
})

test.each([
  ['a link to another file', 'echo other > other; ln -s other lock', 0],
  ['a pipe that nobody writes to', 'mkfifo lock', 0],
  ['a large file', 'truncate -s 3G lock', 262_144],
])('a lock file that is %s neither blocks nor fills the memory', async (_, script, length) => {
  const cwd = mkdtempSync(`${tmpdir()}/lock-`)
  onTestFinished(() => rmSync(cwd, { recursive: true }))
  execFileSync('/bin/sh', ['-c', script], { cwd })
  expect((await readLockFile(`${cwd}/lock`).catch(() => '')).length).toBe(length)
})
