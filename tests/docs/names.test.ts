import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

// Names in the documentation exist.

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter(path => path !== '' && existsSync(join(root, path)))
const pages = tracked.filter(path => path.endsWith('.md'))

const quoted = (page: string): readonly string[] =>
  Array.from(
    read(page)
      .replace(/```[\s\S]*?```/g, '')
      .matchAll(/`([^`\n]+)`/g),
    ([, text]) => text ?? '',
  )

/** GitHub's anchor of a heading. */
const toAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

test.each(pages)('the links of %s lead to existing files and headings', page => {
  const links = Array.from(read(page).matchAll(/\]\(((?!https?:)[^)\s]+)\)/g), ([, link]) => link ?? '')
  const broken = links.filter(link => {
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? page : join(dirname(page), path)
    if (!existsSync(join(root, target))) return true
    if (anchor === undefined) return false
    const headings = read(target).match(/^#+ .*$/gm) ?? []
    return !headings.some(heading => toAnchor(heading.replace(/^#+ /, '')) === anchor)
  })
  expect(broken).toEqual([])
})

/** Paths and file names of sources; a path may be relative to the source folder of an app. */
const isSourcePath = (text: string): boolean => /^[\w./-]+\.(?:ts|mjs|tf|sql|hcl|proto|sh)$/.test(text)

/** Created by the build or by Terraform. */
const isBuilt = (text: string): boolean => /(^|\/)dist(\/|$)/.test(text) || text === '.terraform.lock.hcl'

test.each(pages)('the source files that %s names exist', page => {
  const missing = quoted(page)
    .filter(text => isSourcePath(text) && !isBuilt(text))
    .filter(text => !tracked.some(path => path === text || path.endsWith(`/${text}`) || basename(path) === text))
  expect(missing).toEqual([])
})

test.each(pages)('the folders that %s names exist', page => {
  const missing = quoted(page)
    .filter(text => /^(?:apps|packages|infra|docs|\.github)\/[\w./-]*$/.test(text) && !isBuilt(text))
    .filter(text => !existsSync(join(root, text)))
  expect(missing).toEqual([])
})

test.each(pages)('the metrics that %s names exist', page => {
  const metrics = read('apps/allocation-api/src/observability/metrics.ts')
  const named = read(page).match(/\bpdm_[a-z_]*[a-z]\b/g) ?? []
  // The series of a histogram have suffixes.
  const isMetric = (name: string) =>
    [name, name.replace(/_(?:bucket|count|sum)$/, '')].some(metric => metrics.includes(`'${metric}'`))
  expect(named.filter(name => !isMetric(name))).toEqual([])
})

// The modules in infra/ have no tables; a key of cloud-init can look like one.
test.each(pages.filter(page => !page.startsWith('infra/')))('the tables and columns that %s names exist', page => {
  const schema = tracked
    .filter(path => /^apps\/[^/]+\/src\/(?:database|postgres)\//.test(path) && !path.endsWith('.md'))
    .map(read)
    .join('\n')
  const tables = Array.from(schema.matchAll(/create table (\w+)/g), ([, table]) => table ?? '')
  const prefixes = new Set(tables.map(table => table.split('_')[0]))
  const metrics = Array.from(read('docs/reference/metrics.md').matchAll(/^\| `(\w+)/gm), ([, metric]) => metric)
  const columns = [
    'attempted_version',
    'applied_version',
    'previous_records',
    'pending_error',
    'run_generation',
    'run_expires_at',
  ]
  const named = quoted(page).filter(
    text => columns.includes(text) || (/^[a-z]+(?:_[a-z]+)+$/.test(text) && prefixes.has(text.split('_')[0])),
  )
  // The databases and roles of the installation pages.
  const others = [...metrics, 'lease_witness', 'allocation_api', 'allocation_owner', 'allocation_service']
  expect(named.filter(name => !others.includes(name) && !new RegExp(`\\b${name}\\b`).test(schema))).toEqual([])
})

test.each(pages)('the scripts that %s names exist', page => {
  const { scripts } = JSON.parse(read('package.json'))
  const named = Array.from(
    read(page).matchAll(/\bpnpm(?:@12)? (?:run )?(?!--filter|audit|exec|install)([a-z][a-z:]*)\b/g),
    ([, script]) => script ?? '',
  )
  expect(named.filter(script => !Object.hasOwn(scripts, script))).toEqual([])
})
