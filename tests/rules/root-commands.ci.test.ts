import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'

// What a newcomer types at the root: the tools find their configuration there, and so does whoever runs them.

const root = resolve(import.meta.dirname, '../..')

/** Runs a tool of the root's node_modules/.bin until it exits, or until its output has `until`. */
const runTool = async (tool: string, args: readonly string[], until?: RegExp): Promise<string> => {
  const home = await mkdtemp(join(tmpdir(), 'root-commands-'))
  const { TEST_TIER: _, ...inherited } = process.env
  // The settings of this run of Vitest are not those of the one that it starts.
  const settings = Object.entries(inherited).filter(([name]) => !name.startsWith('VITEST'))
  const env = {
    ...Object.fromEntries(settings),
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: home,
    NO_COLOR: '1',
    CI: 'true',
    CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    WRANGLER_SEND_METRICS: 'false',
  }
  const child = spawn(join(root, 'node_modules/.bin', tool), args, { cwd: root, env, detached: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', chunk => {
      output += chunk
      if (until?.test(output) && child.pid) process.kill(-child.pid, 'SIGINT')
    })
  }
  await new Promise(resolve => child.once('close', resolve))
  await rm(home, { recursive: true, force: true, maxRetries: 5 })
  return output
}

test('a bare vitest has the projects and the fast tests, and says so', async () => {
  const output = await runTool('vitest', ['list', '--filesOnly'])
  expect(output).toContain('Runs the fast tests')
  const files = Array.from(output.matchAll(/^\[([\w-]+)\] (\S+)$/gm), ([, project = '', file = '']) => ({
    project,
    file,
  }))
  expect(new Set(files.map(({ project }) => project)).size).toBeGreaterThan(5)
  expect(files.filter(({ file }) => /\.(ci|proof)\.test\.ts$/.test(file))).toEqual([])
})

test('wrangler deploys and runs the witness from the wrangler.toml of the root', async () => {
  const bundle = await mkdtemp(join(tmpdir(), 'root-commands-'))
  expect(await runTool('wrangler', ['deploy', '--dry-run', '--outdir', bundle])).toContain('--dry-run: exiting now.')
  const state = ['--port', '0', '--persist-to', bundle]
  expect(await runTool('wrangler', ['dev', ...state], /Ready on/)).toMatch(/Ready on http:\/\/\S+:\d+/)
  await rm(bundle, { recursive: true, force: true, maxRetries: 5 })
})
