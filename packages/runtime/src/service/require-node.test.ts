import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const module = new URL('../../require-node.mjs', import.meta.url).href

/** Runs a program that prints "runs" on a Node that reports another version of itself. */
const runOn = (version: string) => {
  const pretend = `Object.defineProperty(process, 'versions', { value: { node: '${version}' } })`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, '--import', module]
  const { status, stdout, stderr } = spawnSync(process.execPath, [...args, '-p', '"runs"'], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

test('an old Node gets one line that says what to install', () => {
  const stderr = 'Node 22.20.0 cannot run this service. Install Node 24 or later.\n'
  expect(runOn('22.20.0')).toEqual({ status: 2, stdout: '', stderr })
})

test('Node 24 and later run the program', () => {
  for (const version of ['24.0.0', '26.1.0'])
    expect(runOn(version)).toEqual({ status: 0, stdout: 'runs\n', stderr: '' })
})
