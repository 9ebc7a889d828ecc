import { spawn } from 'node:child_process'
import { readFileSync, statfsSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { runVitest } from './vitest.mjs'

// `pnpm test` runs every fast test, with the linter and the type checker beside them. The services run from new bundles.
// `pnpm test <path or name> …` runs the matching test files, whatever they need, but for the proofs. `pnpm test:ci [path] …`
// runs the tests that need servers, as `.ci/run` does. The arguments are vitest's: `-t <title>` selects tests.

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

const MEMORY_FOLDER = '/dev/shm'
const MIN_FREE_BYTES = 4 * 2 ** 30

/**
 * The environment that keeps temporary files in memory: there the many small databases of the tests cost a quarter of the
 * CPU time. Empty if TMPDIR is set, the machine has no such folder or little memory, or programs in it cannot be executed.
 */
const keepFilesInMemory = () => {
  if (process.env.TMPDIR || process.platform !== 'linux') return {}
  try {
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
    const [, , type, options = ''] = mounts.find(line => line.split(' ')[1] === MEMORY_FOLDER)?.split(' ') ?? []
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
    const freeBytes = Math.min(bavail * bsize, process.availableMemory())
    const isUsable = type === 'tmpfs' && !options.split(',').includes('noexec') && freeBytes >= MIN_FREE_BYTES
    return isUsable ? { TMPDIR: MEMORY_FOLDER } : {}
  } catch {
    return {}
  }
}

/** A service starts from its bundle in a third of the CPU time that it needs from its sources, and tests start 150 of them. */
const buildService = app =>
  new Promise((resolve, reject) => {
    const entry = fileURLToPath(new URL('../../dev/src/build/main.ts', import.meta.url))
    spawn(process.execPath, [entry, app], { stdio: ['ignore', 'ignore', 'inherit'] }).on('close', code =>
      code === 0 ? resolve() : reject(new Error(`The build of ${app} failed. Its output is above.`)),
    )
  })

const isCi = process.argv[2] === '--ci'
const args = process.argv.slice(isCi ? 3 : 2)
const isWhole = !isCi && args.length === 0
const tier = isCi ? 'ci' : isWhole ? 'fast' : undefined
const checks = isWhole ? ['lint', 'typecheck'].map(runCheck) : []
if (tier) await Promise.all(['allocation-api', 'lease-witness'].map(buildService))
const testsPassed = await runVitest(args, {
  env: {
    ...keepFilesInMemory(),
    ...(tier ? { TEST_BUNDLES: '1', TEST_TIER: tier } : {}),
  },
})
const results = await Promise.all(checks)
results.forEach(report)
process.exitCode = testsPassed && results.every(({ passed }) => passed) ? 0 : 1
