import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import * as z from 'zod'

const releaseWorkflow = z.object({
  jobs: z.object({
    release: z.object({ steps: z.array(z.object({ name: z.string().default(''), run: z.string().default('') })) }),
  }),
})

const VERSION = /^\d+\.\d+\.\d+$/

/** The sections of a changelog in the format of keepachangelog.com, by version. */
export const parseChangelog = (text: string): ReadonlyMap<string, string> =>
  new Map(
    Array.from(text.matchAll(/^## \[([^\]]+)\].*\n([\s\S]*?)(?=^## \[|(?![\s\S]))/gm), ([, version, notes]) => [
      version ?? '',
      (notes ?? '').trim(),
    ]),
  )

/** Every version that the repository states, by file: one tag is one version of everything. */
export const readVersions = (root: string): ReadonlyMap<string, string> => {
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const packages = ['package.json', ...globSync('{tests,{apps,packages}/*}/package.json', { cwd: root }).toSorted()]
  const chart = read('infra/chart/Chart.yaml')
  return new Map([
    ...packages.map((file): [string, string] => [file, JSON.parse(read(file)).version]),
    ['infra/chart/Chart.yaml version', /^version: "?([^"\n]*)/m.exec(chart)?.[1] ?? ''],
    ['infra/chart/Chart.yaml appVersion', /^appVersion: "?([^"\n]*)/m.exec(chart)?.[1] ?? ''],
  ])
}

/** The notes of the release with this tag, or everything that has to change before it. */
export const checkRelease = (
  tag: string,
  versions: ReadonlyMap<string, string>,
  changelog: ReadonlyMap<string, string>,
): { readonly notes: string } | { readonly issues: readonly string[] } => {
  const version = tag.replace(/^v/, '')
  if (tag === version || !VERSION.test(version)) return { issues: [`the tag ${tag} is not of the form v1.2.3`] }
  const notes = changelog.get(version)
  const issues = Array.from(versions)
    .filter(([, stated]) => stated !== version)
    .map(([file, stated]) => `${file} has ${stated || 'no version'}; set ${version}`)
  if (!notes) issues.push(`CHANGELOG.md has no section [${version}]; rename [Unreleased]`)
  return issues.length > 0 || !notes ? { issues } : { notes }
}

/** What the steps of the workflow run that makes a release, by the name of the step. */
export const readReleaseSteps = (root: string): ReadonlyMap<string, string> => {
  const workflow = parse(readFileSync(join(root, '.github/workflows/release.yml'), 'utf8'))
  return new Map(releaseWorkflow.parse(workflow).jobs.release.steps.map(({ name, run }) => [name, run]))
}

/** The names of the files that these commands put into `$ASSETS`, with `$VERSION` in place of the version. */
export const findReleaseFiles = (commands: string): readonly string[] => {
  const loops = /^( *)for (\w+) in (.*); do\n([\s\S]*?)^\1done$/gm
  const unrolled = commands.replace(loops, (_, _indent, name: string, values: string, body: string) =>
    values
      .split(' ')
      .map(value => body.replaceAll(new RegExp(`\\$(?:${name}\\b|\\{${name}\\})`, 'g'), value))
      .join('\n'),
  )
  const named = Array.from(unrolled.matchAll(/\$ASSETS\/([\w.-]+\$VERSION[\w.]+)/g), ([, file = '']) => file)
  const packed = Array.from(unrolled.matchAll(/@pool\/(\w+)"? pack\b/g), ([, name]) => `pool-${name}-$VERSION.tgz`)
  const charts = unrolled.includes('helm package infra/chart') ? ['pool-allocation-$VERSION.tgz'] : []
  const checksums = unrolled.includes('> SHA256SUMS') ? ['SHA256SUMS'] : []
  return [...new Set([...named, ...packed, ...charts, ...checksums])].toSorted()
}
