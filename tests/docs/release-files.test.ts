import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { findReleaseFiles, readReleaseSteps } from './release.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(`${root}/${file}`, 'utf8')
const { version } = JSON.parse(read('package.json'))
const texts = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md', 'examples'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter(file => /\.(md|ya?ml|sh)$/.test(file))

/** The table on the page, which is the one list. */
const [, table = ''] = /^A release has these files.*\n\n((?:\|.*\n)+)/m.exec(read('docs/operate/upgrade.md')) ?? []
const listed = Array.from(table.matchAll(/^\| (.*?) \|/gm), ([, cell = '']) => cell)
  .flatMap(cell => Array.from(cell.matchAll(/`([^`]+)`/g), ([, file = '']) => file))
  .toSorted()

test('the page lists the files that the workflow puts into a release', () => {
  const files = findReleaseFiles([...readReleaseSteps(root).values()].join('\n'))
  expect(files.length).toBeGreaterThan(8)
  expect(listed).toEqual(files)
})

test.each(texts)('%s: it names only files of a release, and installs no package of ours by name', file => {
  const text = read(file)
  const named = Array.from(text.matchAll(/\bpool-\w+-[\d.]+\d\.tgz\b/g), ([name]) => name.replace(version, '$VERSION'))
  expect(named.filter(name => !listed.includes(name))).toEqual([])
  const installs = Array.from(
    text.matchAll(/\b(?:npm|pnpm(?:@\d+)?|yarn|bun) (?:i|install|add|ci|exec)\b(.*)|\b(?:npx|bunx|pnpx|dlx) (.*)/g),
    ([, first, second]) => first ?? second ?? '',
  )
  const ours = /(?:^|\s|')(?:@pool\/(?!…)\S*|poolctl|operator-console|lease-witness|allocation-api)(?=\s|$)/
  const isFromRegistry = (args: string): boolean => !/--filter|--dir|\.tgz|file:/.test(args) && ours.test(args)
  expect(installs.filter(isFromRegistry)).toEqual([])
})

test.each([
  ['for a in b c; do\n  x --filter "@pool/$a" pack\ndone', ['pool-b-$VERSION.tgz', 'pool-c-$VERSION.tgz']],
  ['for a in b; do\n  x "archive:$ASSETS/$a-$VERSION.tar:$a"\ndone', ['b-$VERSION.tar']],
  ['cd "$ASSETS" && sha256sum -- * > SHA256SUMS', ['SHA256SUMS']],
])('%j makes %j', (commands, files) => {
  expect(findReleaseFiles(commands)).toEqual(files)
})
