import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type CpuProfile, findLargestCosts, toFrameName, toTree } from '../../src/profile/cpu-profile.ts'
import { toFlameGraph } from '../../src/profile/flame-graph.ts'
import { runCommand } from '../shared/run-command.ts'

const main = fileURLToPath(new URL('../../src/profile/main.ts', import.meta.url))

const frame = (functionName: string, url = '', lineNumber = -1) => ({ functionName, url, lineNumber })
/** `handle` has two nodes, because V8 compiled it twice. */
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 3, 4, 8] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('handle', 'file:///srv/x/apps/allocation-api/src/http/app.ts', 9), children: [5, 6] },
    { id: 4, callFrame: frame('handle', 'file:///srv/x/apps/allocation-api/src/http/app.ts', 9), children: [7] },
    {
      id: 5,
      callFrame: frame('stringify<T>', 'file:///srv/x/node_modules/.pnpm/pino@1/node_modules/pino/lib/a.js', 0),
    },
    { id: 6, callFrame: frame('', 'node:net', 4) },
    { id: 7, callFrame: frame('', 'node:net', 4) },
    { id: 8, callFrame: frame('toggle', 'file:///srv/x/packages/perf/src/profile/preload.ts', 1), children: [9] },
    { id: 9, callFrame: frame('post', 'node:inspector', 114) },
  ],
  samples: [2, 3, 5, 6, 7, 9, 4],
  timeDeltas: [5_000, 100, 300, 200, 200, 9_000, 200],
}

describe('a profile', () => {
  it.each([
    [frame('(garbage collector)'), '(garbage collector)'],
    [frame('', 'node:net', 4), '(anonymous) node:net:5'],
    [frame('f', 'file:///a/packages/runtime/src/database/writer.ts?x=1', 0), 'f runtime/src/database/writer.ts:1'],
    [frame('f', '/a/node_modules/hono/dist/x.js', 1), 'f hono/dist/x.js:2'],
  ])('names %j without where it is installed', (callFrame, name) => {
    expect(toFrameName(callFrame)).toBe(name)
  })

  it('is a tree without waiting and without the profiler, in which a function is one frame', () => {
    expect(toTree(profile)).toMatchObject({
      name: 'all',
      totalUs: 1_000,
      children: [
        {
          name: 'handle allocation-api/src/http/app.ts:10',
          selfUs: 300,
          totalUs: 1_000,
          children: [
            { name: '(anonymous) node:net:5', totalUs: 400 },
            { name: 'stringify<T> pino/lib/a.js:1', totalUs: 300 },
          ],
        },
      ],
    })
  })

  it('has its largest costs by the time of a function itself', () => {
    expect(findLargestCosts(toTree(profile), 2)).toEqual([
      { name: '(anonymous) node:net:5', share: 0.4 },
      { name: 'handle allocation-api/src/http/app.ts:10', share: 0.3 },
    ])
  })

  it('is drawn with widths in proportion', () => {
    const svg = toFlameGraph(toTree(profile), 'a & b')
    expect(svg).toContain('a &amp; b')
    expect(svg).toContain('<title>stringify&lt;T&gt; pino/lib/a.js:1: 30.0 %, itself 30.0 %</title>')
    expect(svg).toContain('x="480.0" y="24" width="360.0"')
    expect(svg.match(/<rect /g)).toHaveLength(1 + 4)
  })
})

describe('the command', () => {
  it('writes a graph and the costs of each path', async () => {
    const out = await mkdtemp(join(tmpdir(), 'profile-test-'))
    try {
      const { code, stderr, left } = await runCommand(main, [
        'check',
        'lease-get',
        '--seconds=0.3',
        '--users=2',
        `--out=${out}`,
      ])
      expect(code, stderr).toBe(0)
      expect(left).toEqual([])
      expect((await readdir(out)).sort()).toEqual(['README.md', 'check.svg', 'lease-get.svg'])
      expect(await readFile(join(out, 'check.svg'), 'utf8')).toContain('allocation-api/src/')
      const page = await readFile(join(out, 'README.md'), 'utf8')
      expect(page).toContain('## check: GET check, 2 clients')
      // Ten costs of each.
      expect(page.match(/^\| `.* % \|$/gm)).toHaveLength(20)
    } finally {
      await rm(out, { recursive: true })
    }
  })

  it('rejects an unknown path', async () => {
    const { code, stderr } = await runCommand(main, ['chek'])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^profile: unknown path "chek"; .*\n$/) })
  })
})
