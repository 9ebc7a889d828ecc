import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { proofScale } from '../src/proof-size.ts'
import { runVitest } from './vitest.mjs'

// `pnpm prove [path or name …]` runs the proofs (`*.proof.test.ts`) at their full size, or at PROOF_SCALE, and prints their
// figures for docs/verification.md.

const { positionals: filters } = parseArgs({ allowPositionals: true })
const scale = proofScale()

const files = globSync('{apps,packages,tests}/**/*.proof.test.ts', { exclude: ['**/node_modules/**'] })
  .filter(file => filters.length === 0 || filters.some(filter => file.includes(filter)))
  .sort()
if (files.length === 0) {
  process.stderr.write(`No proof matches ${filters.join(' ')}. Name a part of the path of a *.proof.test.ts file.\n`)
  process.exit(2)
}

const figures = []
const started = performance.now()
const passed = await runVitest(files, {
  // A missing server fails the proof instead of skipping it.
  env: { REQUIRE_ALL_DEPS: '1', TEST_TIER: 'proofs' },
  onLine: line => {
    const match = /^proof: (.*)$/.exec(stripVTControlCharacters(line))
    if (match) figures.push(match[1])
  },
})
const minutes = ((performance.now() - started) / 60_000).toFixed(1)
const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim()
const commit = git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with local changes')

process.stdout.write(
  [
    '',
    `Proofs: ${passed ? 'passed' : 'FAILED'} in ${minutes} min`,
    `Commit ${commit}, ${new Date().toISOString().slice(0, 10)}, PROOF_SCALE ${scale}, Node ${process.version}, ${cpus().length} cores`,
    ...files.map(file => `- ${file}`),
    'Figures:',
    ...figures.map(figure => `- ${figure}`),
    '',
  ].join('\n'),
)
process.exitCode = passed ? 0 : 1
