import { spawn } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { proofScale } from '../src/proof-size.ts'
import { runVitest } from './vitest.mjs'

// `pnpm test` runs all tests, with the linter and the type checker beside them.
// `pnpm test <path or name> …` runs the matching test files only. The arguments are vitest's: `-t <title>` selects tests.

/** Runs a script of package.json at low priority, so that it does not delay tests that measure time. */
const runCheck = script =>
  new Promise(resolve => {
    const started = performance.now()
    const child = spawn(process.execPath, ['--run', script], { stdio: ['ignore', 'pipe', 'pipe'] })
    setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL)
    const output = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => output.push(chunk))
    child.on('close', code => {
      const seconds = ((performance.now() - started) / 1_000).toFixed(0)
      if (code !== 0) process.stderr.write(`${script} failed after ${seconds} s; its output follows the tests\n`)
      resolve({ script, seconds, passed: code === 0, output: Buffer.concat(output) })
    })
  })

const report = ({ script, seconds, passed, output }) => {
  process.stdout.write(`${script}: ${passed ? 'passed' : 'failed'} (${seconds} s)\n`)
  if (!passed) process.stdout.write(output)
}

const args = process.argv.slice(2)
process.stdout.write(`PROOF_SCALE ${proofScale()}\n`)
const checks = args.length === 0 ? ['lint', 'typecheck'].map(runCheck) : []
const testsPassed = await runVitest(args)
const results = await Promise.all(checks)
results.forEach(report)
process.exitCode = testsPassed && results.every(({ passed }) => passed) ? 0 : 1
