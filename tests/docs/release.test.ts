import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { checkRelease, parseChangelog, readVersions } from './release.ts'

const changelog = parseChangelog(`# Changelog

## [Unreleased]

### Added

- Next.

## [1.2.0] - 2026-12-01

### Fixed

- A thing.

## [1.1.0] - 2026-11-01

- First.
`)

test('all packages and the chart have one version', () => {
  const versions = readVersions(fileURLToPath(new URL('../..', import.meta.url)))
  expect([...new Set(versions.values())]).toHaveLength(1)
  expect(versions.size).toBeGreaterThan(10)
})

test('a release has the notes of its version', () => {
  expect(checkRelease('v1.2.0', new Map([['package.json', '1.2.0']]), changelog)).toEqual({
    notes: '### Fixed\n\n- A thing.',
  })
  expect(checkRelease('v1.1.0', new Map(), changelog)).toEqual({ notes: '- First.' })
})

test.each([
  ['1.2.0', 'the tag 1.2.0 is not of the form v1.2.3'],
  ['v1.2', 'the tag v1.2 is not of the form v1.2.3'],
  ['v1.2.0-rc.1', 'the tag v1.2.0-rc.1 is not of the form v1.2.3'],
])('the tag %s is rejected', (tag, issue) => {
  expect(checkRelease(tag, new Map(), changelog)).toEqual({ issues: [issue] })
})

test('a tag without its changelog, or with another version in a file, is rejected', () => {
  const versions = new Map([
    ['package.json', '1.2.0'],
    ['infra/chart/Chart.yaml version', ''],
  ])
  expect(checkRelease('v1.3.0', versions, changelog)).toEqual({
    issues: [
      'package.json has 1.2.0; set 1.3.0',
      'infra/chart/Chart.yaml version has no version; set 1.3.0',
      'CHANGELOG.md has no section [1.3.0]; rename [Unreleased]',
    ],
  })
})
